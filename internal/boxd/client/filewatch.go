package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

var _ shellbox.TreeWatcher = (*files)(nil)

// Watch implements shellbox.FileWatcher by the command "boxd watch" in the box. While the
// connection is cut, the program goes on and its output waits. If that is much, the program waits
// too, and the kernel keeps the events.
func (f *files) Watch(ctx context.Context, name string) (shellbox.FileWatch, error) {
	return f.watch(ctx, "watch", name)
}

// WatchTree implements shellbox.TreeWatcher by the command "boxd watch-tree". An earlier boxd does
// not know it.
func (f *files) WatchTree(ctx context.Context, name string) (shellbox.FileWatch, error) {
	return f.watch(ctx, "watch-tree", name)
}

// watch starts one of these commands.
func (f *files) watch(ctx context.Context, command, name string) (shellbox.FileWatch, error) {
	r, err := f.host.startOwn(ctx, f.user, command, name)
	if err != nil {
		return nil, fmt.Errorf("start the watch: %w", err)
	}
	w := &fileWatch{below: command == "watch-tree", lines: bufio.NewReader(r.Stdout()),
		end: sync.OnceFunc(func() { f.host.endServer(r) })}
	stop := context.AfterFunc(ctx, w.end)
	_, err = w.Next()
	if !stop() && err == nil {
		err = ctxerr.Of(ctx)
	}
	if err == nil {
		return w, nil
	}
	w.end()
	select {
	case <-r.ended:
		if w.below && err == errWatchEnded && r.status.Code == usageStatus {
			err = fmt.Errorf("%w: the box's boxd is too old to watch what is below a directory",
				errors.ErrUnsupported)
		}
	default:
	}
	return nil, err
}

// A fileWatch reads what "boxd watch" prints.
type fileWatch struct {
	lines *bufio.Reader
	below bool // names may be paths
	end   func()
}

// usageStatus is boxd's exit status for a command that it does not know.
const usageStatus = 2

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
	return parseEvents(text, w.below)
}

// parseEvents parses a line of "boxd watch", or with below one of "boxd watch-tree".
func parseEvents(text string, below bool) ([]sandbox.FileEvent, error) {
	var line wire.FileEvents
	if json.Unmarshal([]byte(text), &line) != nil {
		return nil, errWatchEnded
	}
	if line.Failed != nil {
		return nil, failure(line.Failed)
	}
	events := make([]sandbox.FileEvent, len(line.Events))
	for i, e := range line.Events {
		if !isEntry(string(e.Name), below) || !isEntry(string(e.From), below) {
			return nil, fmt.Errorf("%w: it tells of %.100q", errWatchEnded, e.Name)
		}
		events[i] = sandbox.FileEvent{Op: sandbox.FileOp(e.Op), Name: string(e.Name),
			From: string(e.From)}
	}
	return events, nil
}

// isEntry reports whether name can be that of an entry, or with below a path from the directory
// that is watched. "" is that directory. A caller may join it to the directory's name.
func isEntry(name string, below bool) bool {
	if name == "" {
		return true
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element == "." || element == ".." {
			return false
		}
	}
	return below || !strings.Contains(name, "/")
}

// Close implements shellbox.FileWatch.
func (w *fileWatch) Close() error {
	w.end()
	return nil
}
