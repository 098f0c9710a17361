package programs

import (
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/tty"
)

// A Keyboard types on a terminal no faster than the terminal's echo is read. When a terminal's
// output is full, Linux drops the echo of input, or holds it back and shows it behind the output of
// a program that starts meanwhile (n_tty's echo buffer). The kernel echoes at a time of its own,
// and only the output shows that it has.
//
// The methods may be called concurrently.
type Keyboard struct {
	w        io.Writer
	terminal syscall.Conn // nil if the terminal is not on this machine
	output   func() int64

	mu    sync.Mutex
	left  int       // how many bytes may be typed before the next wait for the echo
	begin int64     // how much output there was after the last wait
	typed time.Time // the time of the last write

	writes writes
}

// typedAtOnce bounds what is typed before its echo is read. The Keyboard may mistake a program's
// output for echo, but not more than the program prints for a full terminal's input (Linux: 4 KiB,
// N_TTY_BUF_SIZE). That and typedAtOnce, echoed and printed once more, fit in a terminal's output
// (Linux: 12 KiB).
const typedAtOnce = 1 << 10

const (
	// echoLimit bounds the wait for an echo: a program may print without end, and a terminal may
	// echo less than it is given.
	echoLimit = 20 * time.Millisecond
	// echolessLimit is the least time to wait if no echo arrives and the terminal cannot be asked
	// whether it echoes: a slow connection may hold the echo up, and the other end needs a moment
	// to read it.
	echolessLimit = time.Millisecond
)

// NewKeyboard returns a Keyboard that types on a terminal by writing to w. The caller must read the
// terminal's output all the time. output returns how many bytes of it have been read. The Keyboard
// calls it often while it is locked, from the goroutine that types.
//
// If w is a syscall.Conn, as the *os.File of a terminal's master is, the Keyboard asks the terminal
// whether it echoes and whether it has unread output. For any other w it knows only from output
// whether there is an echo; if there is none, it soon hardly waits.
func NewKeyboard(w io.Writer, output func() int64) *Keyboard {
	terminal, _ := w.(syscall.Conn)
	return &Keyboard{w: w, terminal: terminal, output: output, left: typedAtOnce}
}

// Write types text, without the text of another goroutine in between. It blocks while the terminal
// is full. It ends early after an error of the writer, and after a Discard, which is no error.
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

// settle waits until the echo of what was typed has been read, but at most limit since it was
// typed. It returns the limit for the next wait.
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
	// If the output is shorter than an echo, it is a program's: an answer or a prompt.
	if k.terminal == nil && output-k.begin < typedAtOnce/2 {
		next = max(limit/2, echolessLimit)
	}
	k.left, k.begin = typedAtOnce, output
	return next
}

// Close does nothing and returns nil: the end of a terminal's input is a character.
func (k *Keyboard) Close() error { return nil }
