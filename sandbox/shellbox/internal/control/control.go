// Package control answers questions about the processes of a machine on which nothing but a shell
// is available. It runs the script control.sh in a plain sh, beside the shells of the sessions. The
// script reads /proc with builtins.
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
	Close() error // makes reads and writes return; a second call does nothing
	Reap()        // waits until the shell has ended; called after Close
}

// Processes has the methods of hostapi.Processes, but identifies processes by their ids. All
// methods may be called concurrently. One shell answers all questions, one after the other: a line
// to it takes about 0.1 ms, while an SSH channel of its own would take 1 to 3 ms.
type Processes struct {
	startShell func(context.Context) (Shell, error)
	nonce      string
	turn       chan struct{} // full during a question, which owns the fields up to closed

	shell  Shell // nil: none has been started, or the last one failed
	out    *bufio.Reader
	drain  sync.WaitGroup
	closed bool

	memoMu sync.Mutex
	memos  map[int]memo // by the process's id
}

// New returns the Processes of a machine on which startShell starts a plain sh. New does not start
// one: the first question does. If the shell fails, the next question starts another.
func New(startShell func(context.Context) (Shell, error)) *Processes {
	return &Processes{startShell: startShell, nonce: rand.Text(), turn: make(chan struct{}, 1),
		memos: map[int]memo{}}
}

// query returns what a function of control.sh prints. If ctx ends first, the shell is stopped, so
// that its late answer is not taken for the answer to the next question.
func (c *Processes) query(ctx context.Context, call string) (string, error) {
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
	shell, err := c.startShell(ctx)
	if err != nil {
		return err
	}
	c.shell, c.out = shell, bufio.NewReader(shell.Stdout())
	c.drain.Go(func() { io.Copy(io.Discard, shell.Stderr()) })
	_, err = c.ask(ctx, strings.ReplaceAll(controlScript, "\r", ""))
	return err
}

// ask makes the shell execute lines, and returns what they print. If the shell fails, or ctx ends
// first, ask stops the shell.
func (c *Processes) ask(ctx context.Context, lines string) (string, error) {
	shell := c.shell // AfterFunc's goroutine may still run when c.shell is another shell
	stop := context.AfterFunc(ctx, func() { shell.Close() })
	answer, err := c.exchange(lines)
	if !stop() { // AfterFunc closes the shell, even if it has just answered
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		c.stop()
		return "", err
	}
	return answer, nil
}

// exchange writes lines to the shell, and reads up to the nonce that marks the end of the answer.
func (c *Processes) exchange(lines string) (string, error) {
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

// answerMax bounds the length of an answer, and listMax the memory for what it contains. The
// longest answer is the environment of a process, which the kernel bounds.
const (
	answerMax = 8 << 20
	listMax   = 16 << 20
)

// stop closes the shell and waits for its end.
func (c *Processes) stop() {
	if c.shell != nil {
		c.shell.Stdin().Close()
		c.shell.Close()
		c.shell.Reap()
		c.drain.Wait()
		c.shell = nil
	}
}

// Close stops the shell. Later questions fail with sandbox.ErrClosed.
func (c *Processes) Close() {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.closed = true
	c.stop()
}
