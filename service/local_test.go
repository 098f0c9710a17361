package service

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

// A localPlace is a Place in memory, whose boxes are directories of this machine. Tests of what a
// service does with boxes need no engine with it.
type localPlace struct {
	place.Place // nil: what no test needs

	mu    sync.Mutex
	boxes map[string]*localRecord // by handle
	made  int
	asked int         // how often the boxes were listed
	err   error       // of List
	poor  atomic.Bool // the boxes have no tar, and may not use files
	watch []chan place.Event
}

type localRecord struct {
	place.Record
	box *localbox.LocalBox
}

func (p *localPlace) Open(string, *slog.Logger) error {
	p.boxes = map[string]*localRecord{}
	return nil
}

// A localAttached is a connection to a box of a localPlace.
type localAttached struct {
	*localbox.LocalBox
	p *localPlace
}

func (localAttached) Detach() error { return nil }

func (a localAttached) Files() sandbox.Files {
	if a.p.poor.Load() {
		return deniedFiles{a.LocalBox.Files()}
	}
	return a.LocalBox.Files()
}

func (a localAttached) Run(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	if a.p.poor.Load() {
		return 127, fs.ErrNotExist
	}
	return a.LocalBox.Run(ctx, cmd)
}

// deniedFiles may be used only below /allowed, which is the root of all files.
type deniedFiles struct{ sandbox.Files }

func denied(name string) error {
	return &fs.PathError{Op: "use", Path: name, Err: syscall.EACCES}
}

func (deniedFiles) Open(_ context.Context, name string) (sandbox.File, error) {
	return nil, denied(name)
}

func (deniedFiles) WriteFile(_ context.Context, name string, _ []byte, _ fs.FileMode,
	_ ...sandbox.WriteOption) error {
	return denied(name)
}

func (f deniedFiles) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	if under, ok := strings.CutPrefix(name, "/allowed"); ok {
		return f.Files.Stat(ctx, under+"/")
	}
	return nil, denied(name)
}

func (deniedFiles) ReadDir(_ context.Context, name string) ([]fs.DirEntry, error) {
	return nil, denied(name)
}

func (deniedFiles) MkdirAll(_ context.Context, name string, _ fs.FileMode) error {
	if strings.HasPrefix(name, "/allowed") {
		return nil
	}
	return denied(name)
}

func (deniedFiles) Rename(_ context.Context, from, _ string) error { return denied(from) }
func (deniedFiles) Remove(_ context.Context, name string) error    { return denied(name) }

func (p *localPlace) Create(ctx context.Context, r place.Request) (place.Attached, string, error) {
	box, err := localbox.New(ctx, localbox.Config{Env: r.Config.Env})
	if err != nil {
		return nil, "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.boxes {
		if other.ID == r.ID {
			box.Close()
			return nil, "", place.ErrConflict
		}
	}
	p.made++
	handle := fmt.Sprint("local", p.made)
	p.boxes[handle] = &localRecord{place.Record{Handle: handle, ID: r.ID, Spec: r.Spec,
		Status: place.Running, Created: r.Created}, box}
	p.tell(r.ID, place.Running)
	return localAttached{box, p}, handle, nil
}

func (p *localPlace) List(_ context.Context, id string) (list []*place.Record, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked++; p.err != nil {
		return nil, p.err
	}
	for _, r := range p.boxes {
		if id == "" || r.ID == id {
			record := r.Record
			list = append(list, &record)
		}
	}
	return list, nil
}

// fail makes List return an error from now on.
func (p *localPlace) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// count returns how often the boxes were listed.
func (p *localPlace) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// change changes the record of a box.
func (p *localPlace) change(handle string, f func(r *localRecord) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.boxes[handle]
	if r == nil {
		return place.ErrNotFound
	}
	err := f(r)
	p.tell(r.ID, r.Status)
	return err
}

func (p *localPlace) Note(_ context.Context, handle string, n place.Note) error {
	return p.change(handle, func(r *localRecord) error {
		n.Version = 0
		if r.Note != nil {
			n.Version = r.Note.Version + 1
		}
		r.Note = &n
		return nil
	})
}

func (p *localPlace) Attach(_ context.Context, handle string) (a place.Attached, err error) {
	err = p.change(handle, func(r *localRecord) error {
		a = localAttached{r.box, p}
		return nil
	})
	return a, err
}

func (p *localPlace) Pause(_ context.Context, handle string) error {
	return p.change(handle, func(r *localRecord) error {
		r.Status = place.Paused
		return nil
	})
}

func (p *localPlace) Resume(_ context.Context, handle, _ string) (place.Kept, error) {
	return place.KeptAll, p.change(handle, func(r *localRecord) error {
		r.Status = place.Running
		return nil
	})
}

func (p *localPlace) Remove(_ context.Context, handle string) error {
	p.mu.Lock()
	r := p.boxes[handle]
	delete(p.boxes, handle)
	if r != nil {
		p.tell(r.ID, place.Missing)
	}
	p.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.box.Close()
}

func (p *localPlace) Usage(context.Context, string) (*place.Use, error) {
	return &place.Use{Memory: 1}, nil
}

func (p *localPlace) Watch(ctx context.Context) (<-chan place.Event, error) {
	c := make(chan place.Event, 1000)
	c <- place.Event{Status: place.Running}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = append(p.watch, c)
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watch = slices.DeleteFunc(p.watch, func(w chan place.Event) bool { return w == c })
		close(c)
	})
	return c, nil
}

// tell tells those who watch. The caller holds p.mu.
func (p *localPlace) tell(id string, s place.Status) {
	for _, c := range p.watch {
		c <- place.Event{ID: id, Status: s}
	}
}

func (p *localPlace) Tidy(context.Context) error { return nil }

func (p *localPlace) Close() error {
	for _, r := range p.boxes {
		r.box.Close()
	}
	return nil
}
