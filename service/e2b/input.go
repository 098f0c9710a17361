package e2b

import (
	"context"
	"io"
	"sync"

	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/e2b"
)

// maxInput bounds the input of a process that waits to be read, in bytes.
const maxInput = 1 << 20

// An input is the standard input of a process: what clients have sent and the process has not read.
type input struct {
	mu      sync.Mutex
	changed broadcast.Signal
	waiting []byte
	closed  bool // no more comes
	ended   bool // nobody reads it any more
}

var errInputClosed = e2b.Errorf(e2b.FailedPrecondition, "the process's standard input is closed")

// Read implements io.Reader, for the box.
func (i *input) Read(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(i.waiting) == 0 {
		if i.closed || i.ended {
			return 0, io.EOF
		}
		changed := i.changed.Wait()
		i.mu.Unlock()
		<-changed
		i.mu.Lock()
	}
	n := copy(p, i.waiting)
	i.waiting = i.waiting[n:]
	i.changed.Send()
	return n, nil
}

// write adds input. While maxInput bytes wait, it waits until ctx ends.
func (i *input) write(ctx context.Context, p []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for {
		if i.closed || i.ended {
			return errInputClosed
		}
		if len(i.waiting) == 0 || len(i.waiting)+len(p) <= maxInput {
			i.waiting = append(i.waiting, p...)
			i.changed.Send()
			return nil
		}
		changed := i.changed.Wait()
		i.mu.Unlock()
		select {
		case <-changed:
			i.mu.Lock()
		case <-ctx.Done():
			i.mu.Lock()
			return context.Cause(ctx)
		}
	}
}

// close ends the input: the process reads what waits, and then its end.
func (i *input) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed.Send()
}

// end says that the process has ended.
func (i *input) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended, i.waiting = true, nil
	i.changed.Send()
}
