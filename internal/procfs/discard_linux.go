package procfs

import "golang.org/x/sys/unix"

// Discard drops the input that the terminal with that number holds, an unfinished line included. It
// returns the number of bytes; a key that ends the input (^D) counts as one. The terminal's modes
// stay as they are. No program that is blocked in reading the terminal gets any of the input. A
// program that polls the terminal may be woken, rarely, and then finds no input or some of what is
// being dropped.
//
// While a program is blocked in reading the terminal, an unfinished line is dropped but not
// counted.
func Discard(tty int) (n int) {
	withTerminal(tty, func(fd int) {
		processTyped(fd)
		own, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return
		}
		// The kernel counts an unfinished line only outside canonical mode. But a blocked reader
		// would get the line as soon as canonical mode ends.
		canonical := own.Lflag&unix.ICANON != 0
		if canonical && !hasBlockedReader(fd) {
			all := *own
			// With this VMIN, new input wakes no program that polls: n_tty's input_available_p
			// reads VMIN. It must be set before canonical mode ends.
			all.Cc[unix.VMIN], all.Cc[unix.VTIME] = 255, 0
			unix.IoctlSetTermios(fd, unix.TCSETS, &all)
			// With these flags no key is echoed, and no control key has an effect.
			all.Iflag, all.Lflag = 0, 0
			if unix.IoctlSetTermios(fd, unix.TCSETS, &all) == nil {
				canonical = false
				defer unix.IoctlSetTermios(fd, unix.TCSETS, own)
			}
		}
		n = drain(fd)
		if !canonical { // drain has read all; a flush would drop newer input without counting it
			return
		}
		rest, _ := unix.IoctlGetInt(fd, unix.TIOCINQ)
		n += rest
		unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
	})
	return n
}

// IsEmpty reports whether the terminal with that number holds no input, except an unfinished line
// in canonical mode.
func IsEmpty(tty int) (empty bool) {
	withTerminal(tty, func(fd int) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if err != nil || n > 0 { // poll has had the terminal process what is on its way
			return
		}
		left, err := unix.IoctlGetInt(fd, unix.TIOCINQ) // raw mode: poll may wait for more
		empty = err == nil && left == 0
	})
	return empty
}

// drain reads what is there and returns the number of bytes. FIONREAD would not do: it does not
// count input that waits for room in the line discipline's 4096 bytes (N_TTY_BUF_SIZE).
func drain(fd int) (total int) {
	const bound = 1 << 20 // input may come faster than it is read
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

// hasBlockedReader reports whether a program is blocked in reading the terminal. Readers exclude
// each other (n_tty's atomic_read_lock). So a non-blocking read fails if there is another reader,
// even if it asks for no bytes.
func hasBlockedReader(fd int) bool {
	_, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, nil) })
	return err == unix.EAGAIN
}
