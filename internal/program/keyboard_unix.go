//go:build linux || darwin || freebsd || netbsd || openbsd

package program

import (
	"io"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Master is the other end of a terminal.
type Master interface {
	io.Writer
	syscall.Conn
}

// A Keyboard writes to a terminal no faster than its echo is read. A terminal whose output is full drops the echo of what is typed, and says
// nothing (Linux: n_tty's echo buffer). The kernel makes the echo in its own time, and there is no asking whether it has, other than by what
// comes out.
type Keyboard struct {
	master Master
	output func() int64

	mu    sync.Mutex
	left  int       // so much may be typed at once
	begin int64     // so much output there was when that was found out
	typed time.Time // the last time
}

// typedAtOnce bounds what is typed without its echo. A program's output may be taken for echo, but no more of it than the program makes of a full
// terminal's input (Linux: 4 KiB, N_TTY_BUF_SIZE): that and this, echoed and printed once more, have room in a terminal's output (Linux: 12 KiB).
const typedAtOnce = 1 << 10

// echoLimit is for how long typing waits for an echo. A program that prints without end is typed to all the same, and so is one whose terminal
// echoes less than it is given.
const echoLimit = 20 * time.Millisecond

// NewKeyboard returns a Keyboard for a terminal from whose master somebody reads all along; output returns how much that was up to now.
func NewKeyboard(master Master, output func() int64) *Keyboard {
	return &Keyboard{master: master, output: output, left: typedAtOnce}
}

// Write types text.
func (k *Keyboard) Write(text []byte) (n int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n < len(text) && err == nil {
		if k.left == 0 {
			k.settle()
		}
		var written int
		written, err = k.master.Write(text[n:min(len(text), n+k.left)])
		n += written
		k.left -= written
		k.typed = time.Now()
	}
	return n, err
}

// settle waits until the echo of what was typed has been read.
func (k *Keyboard) settle() {
	var echoed int64
	if echoes(k.master) {
		echoed = k.begin + typedAtOnce
	}
	Within(echoLimit-time.Since(k.typed), func() bool { return k.output() >= echoed && !Readable(k.master) })
	k.left, k.begin = typedAtOnce, k.output()
}

// Close does nothing: the end of a terminal's input is a character.
func (k *Keyboard) Close() error { return nil }

// echoes reports whether the terminal echoes what is typed.
func echoes(master syscall.Conn) bool {
	echo := false
	Control(master, func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, ioctlGetTermios)
		echo = err == nil && modes.Lflag&unix.ECHO != 0
		return err
	})
	return echo
}

// Readable reports whether the terminal has output that has not been read. (Linux's poll first has what was written pass through the line
// discipline: n_tty_poll.)
func Readable(master syscall.Conn) bool {
	ready := false
	Control(master, func(fd int) error {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ready = err == nil && n > 0
		return err
	})
	return ready
}

// Within waits until done, for at most limit; it looks often at first.
func Within(limit time.Duration, done func() bool) {
	for begin, pause := time.Now(), 20*time.Microsecond; !done() && time.Since(begin) < limit; pause = min(2*pause, time.Millisecond) {
		time.Sleep(pause)
	}
}
