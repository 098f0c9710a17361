//go:build linux

package history

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

func resolve(dir string) (string, error) {
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR}
	}
	return real, err
}

// An operation is a call on a History. It holds the store's lock.
type operation struct {
	store   *store
	root    int    // the directory
	current *entry // the tree of the last head; nil before a scan, or if there is none
}

func (h *History) begin(ctx context.Context) (o *operation, err error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	o = &operation{}
	if o.root, err = openDir(unix.AT_FDCWD, h.dir); err != nil {
		return nil, &fs.PathError{Op: "open", Path: h.dir, Err: err}
	}
	if o.store, err = openStore(ctx, h.store); err != nil {
		unix.Close(o.root)
		return nil, err
	}
	return o, nil
}

// scan scans the directory.
func (h *History) scan(ctx context.Context, o *operation, force bool) (now *entry, err error) {
	if o.current == nil {
		if o.current, err = o.store.current(); err != nil {
			return nil, err
		}
	}
	return newScan(ctx, o.store, h.limits, force).run(o.root, o.current)
}

// end releases everything, and drops what is not part of a point.
func (o *operation) end() {
	o.store.rollBack() // the next begin does so too
	o.store.close()
	unix.Close(o.root)
}

// save makes a point of a tree. With id 0 it is none that users see.
func (o *operation) save(now *entry, id uint64, unsaved bool) (sandbox.Point, error) {
	p := measure(now)
	p.ID, p.Time = int(id), time.Now()
	hd := head{id: id, time: p.Time.UnixNano(), entries: uint64(p.Entries), bytes: uint64(p.Bytes),
		skipped: uint64(p.SkippedCount)}
	if unsaved {
		hd.unsaved = 1
	}
	if err := o.store.commit(hd, now, o.current); err != nil {
		return sandbox.Point{}, err
	}
	o.current = now
	p.Added = int64(o.store.last().added)
	return p, nil
}

// Save implements sandbox.History.
func (h *History) Save(ctx context.Context) (p sandbox.Point, err error) {
	err = h.do(ctx, "save", func(o *operation) error {
		now, err := h.scan(ctx, o, false)
		if err == nil {
			p, err = o.save(now, o.store.nextID(), false)
		}
		return err
	})
	return p, err
}

// do begins an operation, and names it in its error.
func (h *History) do(ctx context.Context, what string, f func(o *operation) error) error {
	o, err := h.begin(ctx)
	if err == nil {
		defer o.end()
		err = f(o)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, h.dir, err)
	}
	return nil
}

// Points implements sandbox.History.
func (h *History) Points(ctx context.Context) (all []sandbox.Point, err error) {
	err = h.do(ctx, "list the points of", func(o *operation) error {
		for _, hd := range o.store.heads {
			if hd.id != 0 && hd.forgotten == 0 {
				all = append(all, sandbox.Point{ID: int(hd.id), Time: time.Unix(0, hd.time),
					Entries: int(hd.entries), Bytes: int64(hd.bytes), Added: int64(hd.added),
					SkippedCount: int(hd.skipped)})
			}
		}
		return nil
	})
	return all, err
}

// Forget implements sandbox.History.
func (h *History) Forget(ctx context.Context, points ...sandbox.Point) error {
	return h.do(ctx, "forget points of", func(o *operation) error {
		return o.store.forget(ctx, points)
	})
}

// Changes implements sandbox.History.
func (h *History) Changes(ctx context.Context, p sandbox.Point) (list []sandbox.Change, err error) {
	err = h.do(ctx, "compare", func(o *operation) error {
		i, err := o.store.find(p.ID)
		if err != nil {
			return err
		}
		then, err := o.store.tree(i)
		if err != nil {
			return err
		}
		// What the scan adds to the store is dropped at the end.
		now, err := h.scan(ctx, o, false)
		if err == nil {
			list = changes(now, then)
		}
		return err
	})
	return list, err
}

// Back implements sandbox.History.
func (h *History) Back(ctx context.Context, p sandbox.Point) (saved sandbox.Point, err error) {
	err = h.do(ctx, "bring back", func(o *operation) error {
		i, err := o.store.find(p.ID)
		if err != nil {
			return err
		}
		want, err := o.store.tree(i)
		if err != nil {
			return err
		}
		now, err := h.settledScan(ctx, o)
		if err != nil {
			return err
		}
		if o.store.last().unsaved != 0 || len(changes(now, o.current)) > 0 {
			if saved, err = o.save(now, o.store.nextID(), false); err != nil {
				return err
			}
		}
		return h.apply(ctx, o, now, want, p, saved)
	})
	return saved, err
}

// settledScan scans a directory. What may have changed since it was read, with the same times, it
// reads again.
func (h *History) settledScan(ctx context.Context, o *operation) (*entry, error) {
	now, err := h.scan(ctx, o, true)
	if err != nil || !hasRacy(now) {
		return now, err
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
	return newScan(ctx, o.store, h.limits, true).run(o.root, now)
}

// apply makes the directory as want has it. Then it looks at it again: others may have changed it.
func (h *History) apply(ctx context.Context, o *operation, now, want *entry,
	p, saved sandbox.Point) error {
	b := newBack(ctx, o, now, want)
	if err := b.run(); err != nil {
		after := "all that was there is saved"
		if saved.ID != 0 {
			after = fmt.Sprintf("point %d has what was there", saved.ID)
		}
		return fmt.Errorf("to point %d: %w (the directory is partly as it was then; %s: go back "+
			"again)", p.ID, err, after)
	}
	result, err := newScan(ctx, o.store, h.limits, true).run(o.root, now)
	if err != nil {
		return err
	}
	different := changes(result, want)
	for _, c := range different {
		b.left.add(c.Path, fmt.Sprintf("another program has changed it meanwhile (%v)", c.Op))
	}
	if _, err := o.save(result, 0, len(different) > 0); err != nil {
		return err
	}
	if b.left.count > 0 {
		return &sandbox.LeftError{Left: b.left.list, Count: b.left.count}
	}
	return nil
}
