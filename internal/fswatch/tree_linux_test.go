package fswatch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
)

// newTree watches a new directory.
func newTree(t *testing.T) (dir string, w *Tree) {
	dir = filepath.Join(t.TempDir(), "d")
	noError(t, os.Mkdir(dir, 0o700))
	w, err := NewTree(dir)
	noError(t, err)
	t.Cleanup(func() { w.Close() })
	return dir, w
}

// until returns the events up to that of the entry last of the root.
func (w *Tree) until(t testing.TB, last string) (all []sandbox.FileEvent) {
	for {
		events, err := w.Next()
		noError(t, err)
		for i, e := range events {
			if e.Name == last {
				return append(all, events[:i]...)
			}
		}
		all = append(all, events...)
	}
}

// A mirror is a tree as the events tell of it.
type mirror map[string]bool

func (m mirror) apply(e sandbox.FileEvent) {
	below := func(dir string) func(string, bool) bool {
		return func(name string, _ bool) bool {
			return name == dir || strings.HasPrefix(name, dir+"/")
		}
	}
	switch e.Op {
	case sandbox.FileRemoved:
		maps.DeleteFunc(m, below(e.Name))
	case sandbox.FileCreated:
		m[e.Name] = true
	}
}

// TestTreeMirrors checks that the events tell of each entry of a tree that several goroutines
// change at once: they make, move and remove directories and files, also into and out of the tree.
// A move within the tree is told once, for what is below the directory too, so the mirror moves it.
func TestTreeMirrors(t *testing.T) {
	dir, w := newTree(t)
	out := t.TempDir()
	var changing sync.WaitGroup
	for worker := range 3 {
		changing.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), rand.Uint64()))
			path := func() string {
				p := dir
				for range 1 + r.IntN(4) {
					p = filepath.Join(p, string(rune('a'+r.IntN(3))))
				}
				return p
			}
			for i := range 300 {
				switch r.IntN(10) {
				case 0, 1, 2:
					os.MkdirAll(path(), 0o700)
				case 3, 4:
					os.WriteFile(path()+".f", nil, 0o600)
				case 5, 6:
					os.Rename(path(), path())
				case 7:
					os.Rename(path(), filepath.Join(out, fmt.Sprint(worker, i)))
				case 8:
					os.Rename(filepath.Join(out, fmt.Sprint(r.IntN(3), i-r.IntN(20))), path())
				default:
					os.RemoveAll(path())
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		changing.Wait()
		os.WriteFile(filepath.Join(dir, "end"), nil, 0o600)
		close(ended)
	}()
	told := mirror{}
	moved := map[string]mirror{} // what was below a name when that was removed
	for _, e := range w.until(t, "end") {
		switch {
		case e.Op == sandbox.FileRemoved:
			below := mirror{}
			for name := range told {
				if rest, ok := strings.CutPrefix(name, e.Name+"/"); ok {
					below[rest] = true
				}
			}
			moved[e.Name] = below
		case e.From != "":
			for rest := range moved[e.From] {
				told[e.Name+"/"+rest] = true
			}
		}
		told.apply(e)
	}
	<-ended
	is := mirror{}
	noError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." && rel != "end" {
			is[rel] = true
		}
		return err
	}))
	if !maps.Equal(told, is) {
		told, is := slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(is))
		t.Errorf("the events tell of %q\nthere are %q", told, is)
	}
	// each directory that is there is watched
	for name := range is {
		noError(t, os.Chmod(filepath.Join(dir, name), 0o700))
	}
	noError(t, os.WriteFile(filepath.Join(dir, "last"), nil, 0o600))
	for _, e := range w.until(t, "last") {
		if e.Op == sandbox.FileAttributes {
			delete(is, e.Name)
		}
	}
	if len(is) > 0 {
		t.Errorf("not watched: %q", slices.Sorted(maps.Keys(is)))
	}
}

// TestTreeMoves moves directories within the tree, out of it and into it.
func TestTreeMoves(t *testing.T) {
	dir, w := newTree(t)
	out := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	noError(t, os.MkdirAll(at("a/b"), 0o700))
	noError(t, os.Mkdir(at("c"), 0o700))
	noError(t, os.WriteFile(at("go"), nil, 0o600))
	w.until(t, "go")
	noError(t, os.Rename(at("a"), at("c/x")))
	noError(t, os.Mkdir(at("c/x/b/new"), 0o700))
	noError(t, os.Rename(at("c/x"), filepath.Join(out, "x")))
	noError(t, os.WriteFile(filepath.Join(out, "x/b/f"), nil, 0o600)) // of nobody's interest
	noError(t, os.Rename(filepath.Join(out, "x"), at("y")))
	noError(t, os.WriteFile(at("y/b/g"), nil, 0o600))
	noError(t, os.WriteFile(at("end"), nil, 0o600))
	got := w.until(t, "end")
	want := []sandbox.FileEvent{{Op: sandbox.FileRemoved, Name: "a"},
		{Op: sandbox.FileCreated, Name: "c/x", From: "a"},
		{Op: sandbox.FileCreated, Name: "c/x/b/new"}, {Op: sandbox.FileRemoved, Name: "c/x"}}
	if n := len(want); len(got) < n || !slices.Equal(got[:n], want) {
		t.Fatalf("got %v", got)
	}
	rest := mirror{}
	for _, e := range got[len(want):] {
		if rest[e.Name] {
			t.Errorf("%s comes twice in %v", e.Name, got)
		}
		rest.apply(e)
	}
	if names := slices.Sorted(maps.Keys(rest)); !slices.Equal(names,
		[]string{"y", "y/b", "y/b/f", "y/b/g", "y/b/new"}) {
		t.Errorf("then: %v", got[len(want):])
	}
}

// TestTreeNameAgain gives the name of a new directory to another one before any event is read: the
// one that is found under the name is not the one that was created first.
func TestTreeNameAgain(t *testing.T) {
	dir, w := newTree(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	noError(t, os.Mkdir(at("a"), 0o700))
	noError(t, os.WriteFile(at("a/first"), nil, 0o600))
	noError(t, os.Rename(at("a"), at("b")))
	noError(t, os.Mkdir(at("a"), 0o700))
	noError(t, os.WriteFile(at("a/second"), nil, 0o600))
	noError(t, os.WriteFile(at("end"), nil, 0o600))
	if got := w.until(t, "end"); !slices.Equal(got, []sandbox.FileEvent{
		{Op: sandbox.FileCreated, Name: "a"}, {Op: sandbox.FileRemoved, Name: "a"},
		{Op: sandbox.FileCreated, Name: "b", From: "a"}, {Op: sandbox.FileCreated, Name: "b/first"},
		{Op: sandbox.FileCreated, Name: "a"}, {Op: sandbox.FileCreated, Name: "a/second"}}) {
		t.Errorf("got %v", got)
	}
}

// TestTreePlanted checks that symbolic links are not followed, and that a directory that somebody
// else puts into the place of the tree is not taken for it.
func TestTreePlanted(t *testing.T) {
	dir, w := newTree(t)
	out := t.TempDir()
	noError(t, os.MkdirAll(filepath.Join(out, "secret"), 0o700))
	noError(t, os.Symlink(out, filepath.Join(dir, "link")))
	noError(t, os.Symlink(dir, filepath.Join(dir, "loop")))
	noError(t, os.WriteFile(filepath.Join(out, "secret/f"), nil, 0o600))
	noError(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
	if got := w.until(t, "end"); !slices.Equal(got, []sandbox.FileEvent{
		{Op: sandbox.FileCreated, Name: "link"}, {Op: sandbox.FileCreated, Name: "loop"}}) {
		t.Errorf("got %v", got)
	}
	above := filepath.Dir(dir)
	noError(t, os.Rename(above, above+".moved"))
	noError(t, os.MkdirAll(filepath.Join(dir, "a"), 0o700))
	noError(t, os.WriteFile(filepath.Join(dir, "a/b"), nil, 0o600))
	noError(t, os.Mkdir(above+".moved/d/a", 0o700))
	t.Cleanup(func() { os.RemoveAll(above + ".moved") })
	for {
		events, err := w.Next()
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		noError(t, err)
		for _, e := range events {
			if e.Name != "end" && e.Name != "a" {
				t.Errorf("it tells of %v", e)
			}
		}
	}
}

// TestTreeMany moves a directory with more files into the tree than one Next tells of.
func TestTreeMany(t *testing.T) {
	dir, w := newTree(t)
	out := filepath.Join(t.TempDir(), "a")
	noError(t, os.MkdirAll(filepath.Join(out, "b"), 0o700))
	noError(t, os.Rename(out, filepath.Join(dir, "a")))
	noError(t, w.read())
	for i := range eventsMax { // as if so many came before
		w.report(sandbox.FileCreated, fmt.Sprint(i), "")
	}
	w.handleQueue()
	if n := len(w.events); n != eventsMax+1 || w.events[n-1].Op != sandbox.FileOverflow {
		t.Fatalf("%d events, the last of them %v", n, w.events[n-1])
	}
	noError(t, os.WriteFile(filepath.Join(dir, "a/b/f"), nil, 0o600)) // it is watched all the same
	noError(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
	if got := w.until(t, "end"); !slices.Contains(got, sandbox.FileEvent{
		Op: sandbox.FileCreated, Name: "a/b/f"}) {
		t.Errorf("got %v", got)
	}
}

// TestTreeOverflow loses events, and then reports changes in directories that it has not heard of.
func TestTreeOverflow(t *testing.T) {
	dir, w := newTree(t)
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	noError(t, err)
	var limit int
	_, err = fmt.Sscan(string(text), &limit)
	noError(t, err)
	names := []string{filepath.Join(dir, "x"), filepath.Join(dir, "y")}
	for _, name := range names {
		noError(t, os.WriteFile(name, nil, 0o600))
	}
	for i := range limit {
		noError(t, os.Chmod(names[i%2], 0o600))
	}
	noError(t, os.MkdirAll(filepath.Join(dir, "unheard/of"), 0o700))
	for overflow := false; !overflow; {
		events, err := w.Next()
		noError(t, err)
		for _, e := range events {
			overflow = overflow || e.Op == sandbox.FileOverflow
		}
	}
	noError(t, os.WriteFile(filepath.Join(dir, "unheard/of/f"), nil, 0o600))
	noError(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
	if got := w.until(t, "end"); !slices.Contains(got, sandbox.FileEvent{
		Op: sandbox.FileCreated, Name: "unheard/of/f"}) {
		t.Errorf("got %v", got)
	}
}
