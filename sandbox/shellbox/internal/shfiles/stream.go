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

// A stream is a script that runs until its input ends.
type stream struct {
	in    *io.PipeWriter          // the script's input
	out   *bufio.Reader           // the script's output
	first string                  // the first line that it has printed
	stop  context.CancelCauseFunc // kills the script
	ended chan struct{}           // closed when it has ended
	err   error                   // why it has failed; set when ended is closed
}

// lineMax bounds the first line of a script. restMax bounds what a script may print after the
// answers that were read, such as the answer to a call that the caller gave up.
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
		s.err = c.runScriptContext(ctx, stdin, stdout, script, args...)
		stdin.CloseWithError(io.ErrClosedPipe)
		stdout.Close()
		close(s.ended)
	}()
	var err error
	if s.first, err = bounded.Line(s.out, "the first line that the script prints",
		lineMax); err != nil {
		if errors.As(err, new(*bounded.TooLargeError)) {
			s.stop(err)
		}
		return nil, s.finish(fmt.Errorf("the script prints %.1000q", s.first))
	}
	return s, nil
}

// finish closes the script's input and waits for its end. It returns the script's error, or
// fallback if the script has not failed.
func (s *stream) finish(fallback error) error {
	s.in.Close()
	if n, _ := io.Copy(io.Discard, io.LimitReader(s.out, restMax+1)); n > restMax {
		s.stop(&bounded.TooLargeError{What: "what the script prints at its end",
			Max: restMax})
		io.Copy(io.Discard, s.out)
	}
	<-s.ended
	if s.err != nil {
		return s.err
	}
	return fallback
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
		err = f.s.finish(err)
	}
	return n, err
}

// Close returns when everything has been written.
func (f newFile) Close() error { return f.s.finish(nil) }

// Open implements shellbox.FileClient. It opens regular files only, because to open a FIFO would
// block.
func (c *Client) Open(name string) (sandbox.File, error) {
	// The script ends each answer with the random word of the request and a status of three digits.
	// Each tail opens the file again by its descriptor, and so has a file offset of its own.
	s, err := c.start(`is=$(stat -L "$2" "$3" -- "$1") || exit 1
[ -f "$1" ] || { printf '%s\n' "$is"; exit; }
[ -r "$1" ] || { echo ": Permission denied" >&2; exit 1; }
exec 3<"$1" 4>&1 || exit 1
printf '%s\n' "$is" # from here on the file is open, and may be removed
while IFS=' ' read -r end from n; do
	case $from in
	stat) stat -L "$2" "$3" -- /dev/fd/3 3<&3; s=$?;;
	*) s=$( { { tail -c "+$from" /dev/fd/3 3<&3; echo "$?" >&5; } | head -c "$n" >&4; } 5>&1 );;
	esac
	printf '%s%03d' "$end" "$s"
done`, name, c.statOptions[0], c.statOptions[1])
	if err != nil {
		return nil, err
	}
	is, err := parseStat(name, s.first)
	switch {
	case err != nil:
	case is.IsDir():
		err = syscall.EISDIR
	case !is.Mode().IsRegular():
		err = fmt.Errorf("%w: not a regular file (%v)", fs.ErrInvalid, is.Mode().Type())
	default:
		return &openFile{s: s, name: is.Name()}, nil
	}
	return nil, s.finish(err)
}

// An openFile is an open file. The engine reads it with ReadAt only.
type openFile struct {
	s    *stream
	name string

	mu     sync.Mutex // held during calls
	closed bool
}

// statusLen is the length of the status at the end of an answer.
const statusLen = 3

// request requests n bytes from the offset from, counted from 1, or from "stat". It reads the
// answer into p, which has room for its end, and returns the length of the answer without its end.
func (f *openFile) request(from string, n int, p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, fs.ErrClosed
	}
	end := rand.Text()
	if _, err := fmt.Fprintf(f.s.in, "%s %s %d\n", end, from, n); err != nil {
		return 0, f.s.finish(errEnded)
	}
	var got int
	for got < len(p) {
		k, err := f.s.out.Read(p[got:])
		got += k
		if at := got - len(end) - statusLen; at >= 0 &&
			bytes.Equal(p[at:got-statusLen], []byte(end)) {
			// 141 is SIGPIPE: tail had more to print.
			if status := string(p[got-statusLen : got]); status != "000" && status != "141" &&
				at < n {
				return at, syscall.EIO
			}
			return at, nil
		}
		if err != nil {
			return 0, f.s.finish(errEnded)
		}
	}
	return 0, fmt.Errorf("read the file by tail and head: %d bytes came, where %d were wanted", got,
		n)
}

// answerEnd is the length of the word and the status that end an answer.
var answerEnd = len(rand.Text()) + statusLen

func (f *openFile) ReadAt(p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	buf := make([]byte, len(p)+answerEnd)
	n, err := f.request(fmt.Sprint(offset+1), len(p), buf)
	copy(p, buf[:n])
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (f *openFile) Stat() (fs.FileInfo, error) {
	const line = 4096 // bounds the line
	buf := make([]byte, line+answerEnd)
	n, err := f.request("stat", line, buf)
	if err != nil {
		return nil, err
	}
	i, err := parseStat(f.name, strings.TrimSpace(string(buf[:n])))
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
	return f.s.finish(nil)
}

// The engine implements Read and Seek itself.
func (f *openFile) Read([]byte) (int, error)       { return 0, syscall.ENOTSUP }
func (f *openFile) Seek(int64, int) (int64, error) { return 0, syscall.ENOTSUP }
