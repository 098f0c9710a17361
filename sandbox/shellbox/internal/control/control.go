// Package control answers questions about the processes of a machine on which there is nothing but
// a shell: by control.sh, in a plain sh beside the sessions, which reads /proc with builtins.
package control

import (
	"bufio"
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

//go:embed control.sh
var controlScript string

// A Shell is a plain sh without a terminal.
type Shell interface {
	Stdin() io.WriteCloser
	Stdout() io.Reader
	Stderr() io.Reader
	Close() error // reads and writes under way return. Closing again does nothing
	Reap()        // waits for its end, after Close
}

// Processes is what a shell tells of processes: it has the methods of hostapi.Processes, but for
// processes that it knows by their ids. All methods may be called from several goroutines. It
// answers one question after the other: a line to the shell costs some 0.1 ms, an SSH channel of
// its own 1 to 3 ms.
type Processes struct {
	begin func(context.Context) (Shell, error)
	nonce string
	turn  chan struct{} // full during a question, which owns the fields below

	shell  Shell // nil: none yet, or the last one failed
	out    *bufio.Reader
	drain  sync.WaitGroup
	closed bool

	memory sync.Mutex
	memos  map[int]memo // by the process's id: what Look need not be told again
}

// New returns the Processes of a machine on which begin starts a plain sh. It starts one with the
// first question, and another one when that has failed.
func New(begin func(context.Context) (Shell, error)) *Processes {
	return &Processes{begin: begin, nonce: rand.Text(), turn: make(chan struct{}, 1),
		memos: map[int]memo{}}
}

// do returns what one of control.sh's functions prints. If ctx ends first, the shell is given up:
// its late answer would be taken for that of the next question. The next question starts another
// shell.
func (c *Processes) do(ctx context.Context, call string) (string, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctxerr.Of(ctx)
	}
	defer func() { <-c.turn }()
	if c.closed {
		return "", sandbox.ErrClosed
	}
	if c.shell == nil {
		if err := c.start(ctx); err != nil {
			return "", fmt.Errorf("start control shell: %w", err)
		}
	}
	answer, err := c.ask(ctx, call)
	if err != nil {
		return "", fmt.Errorf("control shell: %w", err)
	}
	return answer, nil
}

func (c *Processes) start(ctx context.Context) error {
	shell, err := c.begin(ctx)
	if err != nil {
		return err
	}
	c.shell, c.out = shell, bufio.NewReader(shell.Stdout())
	c.drain.Go(func() { io.Copy(io.Discard, shell.Stderr()) })
	_, err = c.ask(ctx, strings.ReplaceAll(controlScript, "\r", ""))
	return err
}

// ask has the shell execute lines and returns what they print. A shell that fails, or takes longer
// than ctx allows, is stopped.
func (c *Processes) ask(ctx context.Context, lines string) (string, error) {
	shell := c.shell // for the goroutine: it may still run when c.shell is another shell
	stop := context.AfterFunc(ctx, func() { shell.Close() })
	answer, err := c.converse(lines)
	if !stop() { // AfterFunc closes the shell, even if it has just answered
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		c.stop()
		return "", err
	}
	return answer, nil
}

func (c *Processes) converse(lines string) (string, error) {
	if _, err := io.WriteString(c.shell.Stdin(), lines+"\necho "+c.nonce+"\n"); err != nil {
		return "", err
	}
	var answer strings.Builder //bounded: by answerMax
	for {
		line, err := bounded.Line(c.out, "a line of the control shell", answerMax)
		if err != nil {
			return "", err
		}
		if line == c.nonce {
			return answer.String(), nil
		}
		if answer.Len()+len(line) >= answerMax {
			return "", &bounded.TooLargeError{What: "an answer of the control shell",
				Max: answerMax}
		}
		answer.WriteString(line)
		answer.WriteByte('\n')
	}
}

// answerMax is how long an answer may be. The longest has the environment of a process, which the
// kernel bounds, each byte as a few characters. What an answer says takes listMax at most.
const (
	answerMax = 8 << 20
	listMax   = 16 << 20
)

// stop lets go of the shell; it ends at the end of its input.
func (c *Processes) stop() {
	if c.shell != nil {
		c.shell.Stdin().Close()
		c.shell.Close()
		c.shell.Reap()
		c.drain.Wait()
		c.shell = nil
	}
}

// Close lets go of the shell. Questions fail from then on with sandbox.ErrClosed.
func (c *Processes) Close() {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.closed = true
	c.stop()
}
