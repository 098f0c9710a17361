package boxclient

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/wire"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

var _ shellbox.FileWatcher = (*files)(nil)

// Watch implements shellbox.FileWatcher, by a program of boxd's own. It goes on while the connection is cut; what it has printed waits, and when much does, it waits
// too, and the kernel keeps the events.
func (f *files) Watch(ctx context.Context, name string) (shellbox.FileWatch, error) {
	p, err := f.host.Start(ctx, shellbox.Program{
		Args: []string{"/proc/self/exe", "watch", name}, Dir: "/", User: f.user,
	})
	if err != nil {
		return nil, fmt.Errorf("start the watch: %w", err)
	}
	r := p.(*remote)
	w := &fileWatch{lines: json.NewDecoder(r.Stdout()), end: sync.OnceFunc(func() { f.host.endServer(r) })}
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

// A fileWatch reads what the program prints.
type fileWatch struct {
	lines *json.Decoder
	end   func()
}

var errWatchEnded = fmt.Errorf("%w (what watches the files in it has ended)", sandbox.ErrCut)

// Next implements shellbox.FileWatch.
func (w *fileWatch) Next() ([]sandbox.FileEvent, error) {
	var line wire.FileEvents
	if err := w.lines.Decode(&line); err != nil {
		return nil, errWatchEnded
	}
	if line.Failed != nil {
		return nil, wire.Decode(line.Failed)
	}
	events := make([]sandbox.FileEvent, len(line.Events))
	for i, e := range line.Events {
		events[i] = sandbox.FileEvent{Op: sandbox.FileOp(e.Op), Name: string(e.Name), From: string(e.From)}
	}
	return events, nil
}

// Close implements shellbox.FileWatch.
func (w *fileWatch) Close() error {
	w.end()
	return nil
}
