package procfs

import "golang.org/x/sys/unix"

// Discard drops the input that the terminal of that number holds, an unfinished line too, and
// returns how many bytes these were; a key that ends the input (^D) is one. The terminal's modes
// stay as they are, and nobody who waits for input is given any. (Who polls may be woken, rarely,
// and then finds nothing, or what is being dropped.)
//
// The unfinished line is dropped, but not counted, while a program is blocked in reading the
// terminal.
func Discard(tty int) (n int) {
	withTerminal(tty, func(fd int) {
		settle(fd)
		own, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return
		}
		// To make the unfinished line count, canonical mode must go; a blocked reader would be
		// given it then.
		canonical := own.Lflag&unix.ICANON != 0
		if canonical && !blocks(fd) {
			all := *own
			// what comes in meanwhile wakes nobody who polls. n_tty's input_available_p reads VMIN
			all.Cc[unix.VMIN], all.Cc[unix.VTIME] = 255, 0
			// before ICANON: so it has to be there first
			unix.IoctlSetTermios(fd, unix.TCSETS, &all)
			all.Iflag, all.Lflag = 0, 0 // and is neither echoed nor obeyed
			if unix.IoctlSetTermios(fd, unix.TCSETS, &all) == nil {
				canonical = false
				defer unix.IoctlSetTermios(fd, unix.TCSETS, own)
			}
		}
		n = drain(fd)
		if !canonical { // that was all; what has come since a flush would not count
			return
		}
		rest, _ := unix.IoctlGetInt(fd, unix.TIOCINQ)
		n += rest
		unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
	})
	return n
}

// drain reads what is there. FIONREAD does not count what waits for room in the line discipline's
// 4096 bytes (N_TTY_BUF_SIZE).
func drain(fd int) (total int) {
	const bound = 1 << 20 // a writer may be faster
	buf := make([]byte, 4096)
	for total < bound {
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, buf) })
		if err != nil || n <= 0 {
			break
		}
		total += n
	}
	return total
}

// blocks reports whether a program is blocked in reading the terminal: readers take turns (n_tty's
// atomic_read_lock), and one that would not wait for its turn is refused, even if it wants no byte.
func blocks(fd int) bool {
	_, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, nil) })
	return err == unix.EAGAIN
}
