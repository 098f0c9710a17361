package shellstate

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A receiver reads what a session's shell writes to a FIFO of the sandbox. A file would be left on
// a disk, and need not be allowed (ulimit -f 0); what the terminal shows is recorded.
type receiver struct {
	fifo  string // its path
	input *io.PipeWriter
	done  chan struct{} // closed when the program has ended
	stop  context.CancelFunc

	mu      sync.Mutex
	text    []byte // at most Max bytes
	full    error  // there was more
	arrived broadcast.Signal
	err     error // when done: why it has ended
}

//go:embed receive.sh
var receiveScript string

// cleanUpLimit bounds how long the program may take to remove its FIFO.
const cleanUpLimit = 5 * time.Second

// receive starts a program that makes a FIFO and reads it, as the user of s.
func receive(ctx context.Context, s Session) (*receiver, error) {
	input, w := io.Pipe()
	// The program ends with its input, also when ctx has ended: it has a FIFO to remove.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &receiver{input: w, done: make(chan struct{}), stop: stop}
	go func() {
		defer close(r.done)
		code, err := s.Run(run, &sandbox.Cmd{Args: []string{"sh", "-c", receiveScript},
			Stdin: input, Stdout: r})
		if err == nil && code == 9 {
			err = errors.New("there is no directory in which mktemp and mkfifo make a FIFO")
		}
		if err == nil {
			err = fmt.Errorf("the program that reads it ended with status %d", code)
		}
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
		input.CloseWithError(err)
	}()
	line, err := r.upTo(ctx, "\n")
	if r.fifo = string(line); err == nil && !strings.HasPrefix(r.fifo, "/") {
		err = errors.New("the program that reads it has not named its FIFO")
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// Write implements io.Writer.
func (r *receiver) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.text)+len(p) > Max {
		r.full = &bounded.TooLargeError{What: "the state of a shell", Max: Max}
	}
	if r.full == nil {
		r.text = append(r.text, p...)
	}
	r.arrived.Send()
	return len(p), r.full
}

// upTo takes what comes before end.
func (r *receiver) upTo(ctx context.Context, end string) ([]byte, error) {
	for searched := 0; ; {
		r.mu.Lock()
		arrived, full := r.arrived.Wait(), r.full
		i := bytes.Index(r.text[searched:], []byte(end))
		if i >= 0 {
			i += searched
			text := r.text[:i:i]
			r.text = r.text[i+len(end):]
			r.mu.Unlock()
			return text, nil
		}
		searched = max(0, len(r.text)-len(end))
		r.mu.Unlock()
		if full != nil {
			return nil, full
		}
		select {
		case <-arrived:
		case <-r.done:
			return nil, r.err
		case <-ctx.Done():
			return nil, ctxerr.Of(ctx)
		}
	}
}

// take makes the session's shell write, and returns what it has written.
func (r *receiver) take(ctx context.Context, s Session, text string) ([]byte, error) {
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // without a reader, the shell would wait for ever
		select {
		case <-r.done:
			cancel()
		case <-run.Done():
		}
	}()
	if err := s.Execute(run, text); err != nil {
		return nil, err
	}
	// What the program writes to its FIFO now comes after all that the shell has written.
	mark := rand.Text()
	if _, err := io.WriteString(r.input, mark+"\n"); err != nil {
		return nil, err
	}
	return r.upTo(ctx, "\n"+mark+"\n")
}

// close ends the program, which removes its FIFO.
func (r *receiver) close() {
	r.input.Close()
	select {
	case <-r.done:
	case <-time.After(cleanUpLimit):
	}
	r.stop()
	<-r.done
}
