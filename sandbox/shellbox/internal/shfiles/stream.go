package shfiles

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"syscall"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A stream is a script that goes on, and what it is told and says.
type stream struct {
	in    *io.PipeWriter
	out   *bufio.Reader
	first string                  // the line with which it began
	stop  context.CancelCauseFunc // kills the script
	ended chan struct{}
	err   error // why it has ended; set when ended is closed
}

// lineMax is how long the first line of a script may be, and restMax how much may come after what
// is asked for: the answer to a call that was given up.
const (
	lineMax = 4 << 10
	restMax = 4 << 20
)

// start starts a script, and waits until it has printed a line.
func (c *Client) start(script string, args ...string) (*stream, error) {
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	ctx, stop := ctxerr.WithCancel(c.life)
	s := &stream{in: in, out: bufio.NewReader(out), stop: stop, ended: make(chan struct{})}
	go func() {
		defer stop(nil)
		s.err = c.doIn(ctx, stdin, stdout, script, args...)
		stdin.CloseWithError(io.ErrClosedPipe)
		stdout.Close()
		close(s.ended)
	}()
	var err error
	if s.first, err = bounded.Line(s.out, "the first line that the program for it prints",
		lineMax); err != nil {
		if errors.As(err, new(*bounded.TooLargeError)) {
			s.stop(err)
		}
		return nil, s.end(fmt.Errorf("the program for it prints %.1000q", s.first))
	}
	return s, nil
}

// end ends the script's input, waits for its end, and returns why it has failed; else, unless it is
// nil, but.
func (s *stream) end(but error) error {
	s.in.Close()
	if n, _ := io.Copy(io.Discard, io.LimitReader(s.out, restMax+1)); n > restMax {
		s.stop(&bounded.TooLargeError{What: "what the program for it prints at its end",
			Max: restMax})
		io.Copy(io.Discard, s.out)
	}
	<-s.ended
	if s.err != nil {
		return s.err
	}
	return but
}

// Create implements shellbox.FileClient.
func (c *Client) Create(name string) (io.WriteCloser, error) {
	s, err := c.start(`umask 077; set -C; exec 3>&1
{ printf 'ok\n' >&3; exec cat; } >"$1" || { if [ -L "$1" ] || [ -e "$1" ]; then echo ": File exists"; else ls -d -- "${1%/*}/."; fi >&2; exit 1; }`, name)
	if err != nil {
		return nil, err
	}
	return newFile{s}, nil
}

// A newFile is a file that is being written.
type newFile struct{ s *stream }

func (f newFile) Write(p []byte) (int, error) {
	n, err := f.s.in.Write(p)
	if err != nil {
		err = f.s.end(err)
	}
	return n, err
}

// Close returns when all is written.
func (f newFile) Close() error { return f.s.end(nil) }

// Open implements shellbox.FileClient. What is no regular file is not opened: a FIFO would wait.
func (c *Client) Open(name string) (sandbox.File, error) {
	// It answers what ends with a word that no file can have, and a status. Each tail opens the
	// file anew, by the descriptor, so that nobody else has moved on in it.
	s, err := c.start(`is=$(stat -L "$2" "$3" -- "$1") || exit 1
[ -f "$1" ] || { printf '%s\n' "$is"; exit; }
[ -r "$1" ] || { echo ": Permission denied" >&2; exit 1; }
exec 3<"$1" 4>&1 || exit 1
printf '%s\n' "$is" # now it is open, and may be removed
while IFS=' ' read -r end from n; do
	case $from in
	stat) stat -L "$2" "$3" -- /dev/fd/3 3<&3; s=$?;;
	*) s=$( { { tail -c "+$from" /dev/fd/3 3<&3; echo "$?" >&5; } | head -c "$n" >&4; } 5>&1 );;
	esac
	printf '%s%03d' "$end" "$s"
done`, name, c.stat[0], c.stat[1])
	if err != nil {
		return nil, err
	}
	is, err := parse(name, s.first)
	switch {
	case err != nil:
	case is.IsDir():
		err = syscall.EISDIR
	case !is.Mode().IsRegular():
		err = fmt.Errorf("%w: no regular file (%v)", fs.ErrInvalid, is.Mode().Type())
	default:
		return &openFile{s: s, name: is.Name()}, nil
	}
	return nil, s.end(err)
}

// An openFile is an open file. The engine reads it by ReadAt only.
type openFile struct {
	s    *stream
	name string

	mu     sync.Mutex // held by calls
	closed bool
}

// statusLen is the length of a status behind an answer's last word.
const statusLen = 3

// ask asks for at most n bytes, into p, which has room for what ends them. It returns how many
// there were.
func (f *openFile) ask(from string, n int, p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, fs.ErrClosed
	}
	end := rand.Text()
	if _, err := fmt.Fprintf(f.s.in, "%s %s %d\n", end, from, n); err != nil {
		return 0, f.s.end(errEnded)
	}
	var got int
	for got < len(p) {
		k, err := f.s.out.Read(p[got:])
		got += k
		if at := got - len(end) - statusLen; at >= 0 &&
			bytes.Equal(p[at:got-statusLen], []byte(end)) {
			// 141: tail had more
			if status := string(p[got-statusLen : got]); status != "000" && status != "141" &&
				at < n {
				return at, syscall.EIO
			}
			return at, nil
		}
		if err != nil {
			return 0, f.s.end(errEnded)
		}
	}
	return 0, fmt.Errorf("read the file by tail and head: %d bytes came, where %d were wanted", got,
		n)
}

// answerEnd is how much comes behind an answer.
var answerEnd = len(rand.Text()) + statusLen

func (f *openFile) ReadAt(p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	buf := make([]byte, len(p)+answerEnd)
	n, err := f.ask(fmt.Sprint(offset+1), len(p), buf)
	copy(p, buf[:n])
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (f *openFile) Stat() (fs.FileInfo, error) {
	const line = 4096 // at most
	buf := make([]byte, line+answerEnd)
	n, err := f.ask("stat", line, buf)
	if err != nil {
		return nil, err
	}
	i, err := parse(f.name, strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return nil, err
	}
	return i, nil
}

func (f *openFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	return f.s.end(nil)
}

// Read and Seek are the engine's own.
func (f *openFile) Read([]byte) (int, error)       { return 0, syscall.ENOTSUP }
func (f *openFile) Seek(int64, int) (int64, error) { return 0, syscall.ENOTSUP }
