package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

var _ shellbox.FileWatcher = (*files)(nil)

// Watch implements shellbox.FileWatcher by the command "boxd watch" in the box. While the
// connection is cut, the program goes on and its output waits. If that is much, the program waits
// too, and the kernel keeps the events.
func (f *files) Watch(ctx context.Context, name string) (shellbox.FileWatch, error) {
	r, err := f.host.startOwn(ctx, f.user, "watch", name)
	if err != nil {
		return nil, fmt.Errorf("start the watch: %w", err)
	}
	w := &fileWatch{lines: bufio.NewReader(r.Stdout()), end: sync.OnceFunc(func() {
		f.host.endServer(r)
	})}
	stop := context.AfterFunc(ctx, w.end)
	_, err = w.Next()
	if !stop() && err == nil {
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		w.end()
		return nil, err
	}
	return w, nil
}

// A fileWatch reads what "boxd watch" prints.
type fileWatch struct {
	lines *bufio.Reader
	end   func()
}

var errWatchEnded = fmt.Errorf("%w (the program that watches its files has ended)", sandbox.ErrCut)

// Next implements shellbox.FileWatch.
func (w *fileWatch) Next() ([]sandbox.FileEvent, error) {
	text, err := bounded.Line(w.lines, "a line of boxd watch", wire.FileEventsMax)
	switch {
	case errors.As(err, new(*bounded.TooLargeError)):
		return nil, fmt.Errorf("%w: %w", errWatchEnded, err)
	case err != nil:
		return nil, errWatchEnded
	}
	return parseEvents(text)
}

// parseEvents parses a line of "boxd watch".
func parseEvents(text string) ([]sandbox.FileEvent, error) {
	var line wire.FileEvents
	if json.Unmarshal([]byte(text), &line) != nil {
		return nil, errWatchEnded
	}
	if line.Failed != nil {
		return nil, failure(line.Failed)
	}
	events := make([]sandbox.FileEvent, len(line.Events))
	for i, e := range line.Events {
		events[i] = sandbox.FileEvent{Op: sandbox.FileOp(e.Op), Name: string(e.Name),
			From: string(e.From)}
	}
	return events, nil
}

// Close implements shellbox.FileWatch.
func (w *fileWatch) Close() error {
	w.end()
	return nil
}
