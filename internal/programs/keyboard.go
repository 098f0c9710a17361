package programs

import (
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/tty"
)

// A Keyboard types on a terminal no faster than the terminal's echo is read. When a terminal's
// output is full, Linux drops the echo of what is typed, or keeps it back and shows it behind the
// output of a program that starts meanwhile (n_tty's echo buffer). The kernel echoes in its own
// time, and says of it no more than what comes out.
//
// Its methods may be called from several goroutines.
type Keyboard struct {
	w        io.Writer
	terminal syscall.Conn // nil: it is elsewhere, and cannot be asked
	output   func() int64

	mu    sync.Mutex
	left  int       // so many bytes may still be typed before their echo is waited for
	begin int64     // how much output there was when that was last waited for
	typed time.Time // the time of the last write

	writes writes
}

// typedAtOnce bounds what is typed without its echo. A program's output may be taken for echo, but
// no more of it than the program makes of a full terminal's input (Linux: 4 KiB, N_TTY_BUF_SIZE):
// that and this, echoed and printed once more, have room in a terminal's output (Linux: 12 KiB).
const typedAtOnce = 1 << 10

const (
	// echoLimit is for how long typing waits for an echo. A program that prints without end is
	// typed to all the same, and so is one whose terminal echoes less than it is given.
	echoLimit = 20 * time.Millisecond
	// echolessLimit is for how long typing waits at least where no echo comes and nobody can be
	// asked whether one will: it may be a slow connection that keeps it, and the other end should
	// have a moment to read it.
	echolessLimit = time.Millisecond
)

// NewKeyboard returns a Keyboard that types on a terminal by writing to w. Somebody has to read the
// terminal's output all along; output returns how many bytes of it have been read up to now. It is
// called while the Keyboard is locked, often, from the goroutine that types.
//
// If w is a syscall.Conn, as the *os.File of a terminal's master is, the terminal is asked whether
// it echoes and whether it has output that has not been read. Of any other w the Keyboard learns
// from output alone whether there is an echo, and where there is none it soon hardly waits.
func NewKeyboard(w io.Writer, output func() int64) *Keyboard {
	terminal, _ := w.(syscall.Conn)
	return &Keyboard{w: w, terminal: terminal, output: output, left: typedAtOnce}
}

// Write types text. It blocks while the terminal takes no more, and ends early only by an error of
// the writer, or by Discard, which is none. Of another goroutine's text nothing is typed in
// between.
func (k *Keyboard) Write(text []byte) (n int, err error) {
	number := k.writes.begin()
	defer k.writes.end(number)
	k.mu.Lock()
	defer k.mu.Unlock()
	limit := echoLimit
	for n < len(text) && err == nil {
		if k.left == 0 {
			limit = k.settle(limit)
		}
		if k.writes.drop(number, len(text)-n) {
			return len(text), nil
		}
		var written int
		written, err = k.w.Write(text[n:min(len(text), n+k.left)])
		n += written
		k.left -= written
		k.typed = time.Now()
	}
	return n, err
}

// settle waits until the echo of what was typed has been read, for at most limit since then, and
// returns the limit for the next time.
func (k *Keyboard) settle(limit time.Duration) (next time.Duration) {
	next = echoLimit
	settled := func() bool { return k.output()-k.begin >= typedAtOnce }
	if k.terminal != nil {
		echoes := tty.Echoes(k.terminal)
		settled = func() bool {
			return (!echoes || k.output()-k.begin >= typedAtOnce) && !tty.Readable(k.terminal)
		}
	}
	tty.Within(limit-time.Since(k.typed), settled)
	output := k.output()
	// less than an echo is: a program's answers, a prompt
	if k.terminal == nil && output-k.begin < typedAtOnce/2 {
		next = max(limit/2, echolessLimit)
	}
	k.left, k.begin = typedAtOnce, output
	return next
}

// Close does nothing, and returns nil: the end of a terminal's input is a character.
func (k *Keyboard) Close() error { return nil }
