package shellbox

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/sandbox"
)

//go:embed control.sh
var controlScript string

// A control answers questions about processes (see answers.go) for a Host without Processes: it is a shell without a terminal, beside the sessions, that
// runs the functions of control.sh. A line to that shell costs some 0.1 ms, an SSH channel of its own 1 to 3 ms. It answers one question after the other.
type control struct {
	host  Host
	nonce string
	turn  chan struct{} // full during a question, which owns the fields below

	shell  Process // nil: none yet, or the last one failed
	out    *bufio.Reader
	drain  sync.WaitGroup
	closed bool

	memory sync.Mutex
	memos  map[int]memo // by the process's id: what Look need not be told again
}

func newControl(host Host, nonce string) *control {
	return &control{host: host, nonce: nonce, turn: make(chan struct{}, 1), memos: map[int]memo{}}
}

// do returns what one of control.sh's functions prints. If ctx ends first, the shell is given up: its late answer would be taken for that
// of the next question. The next question starts another shell.
func (c *control) do(ctx context.Context, call string) (string, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
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

func (c *control) start(ctx context.Context) error {
	shell, err := c.host.Start(ctx, Program{Args: []string{"sh"}, Dir: "/"})
	if err != nil {
		return err
	}
	c.shell, c.out = shell, bufio.NewReader(shell.Stdout())
	c.drain.Go(func() { io.Copy(io.Discard, shell.Stderr()) })
	_, err = c.ask(ctx, strings.ReplaceAll(controlScript, "\r", ""))
	return err
}

// ask has the shell execute lines and returns what they print. A shell that fails, or takes longer than ctx allows, is stopped.
func (c *control) ask(ctx context.Context, lines string) (string, error) {
	shell := c.shell // for the goroutine: it may still run when c.shell is another shell
	stop := context.AfterFunc(ctx, func() { shell.Close() })
	answer, err := c.converse(lines)
	if !stop() { // AfterFunc closes the shell, even if it has just answered
		err = context.Cause(ctx)
	}
	if err != nil {
		c.stop()
		return "", err
	}
	return answer, nil
}

func (c *control) converse(lines string) (string, error) {
	if _, err := io.WriteString(c.shell.Stdin(), lines+"\necho "+c.nonce+"\n"); err != nil {
		return "", err
	}
	var answer strings.Builder
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			return "", err
		}
		if line == c.nonce+"\n" {
			return answer.String(), nil
		}
		answer.WriteString(line)
	}
}

// stop lets go of the shell; it ends at the end of its input.
func (c *control) stop() {
	if c.shell != nil {
		c.shell.Stdin().Close()
		c.shell.Close()
		c.shell.Wait()
		c.drain.Wait()
		c.shell = nil
	}
}

func (c *control) close() {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.closed = true
	c.stop()
}
