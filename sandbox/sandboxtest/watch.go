package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// watched is the result of a Watch.
type watched struct {
	next func() (sandbox.FileEvent, error, bool)
	stop func()
}

// watch calls Watch. The watch ends with t, or with ctx.
func (b *box) watch(t testing.TB, ctx context.Context, name string,
	opts ...sandbox.WatchOption) watched {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	t.Cleanup(cancel)
	var events iter.Seq2[sandbox.FileEvent, error]
	b.files(t, "Watch", func(_ context.Context, f sandbox.Files) (err error) {
		events, err = f.Watch(ctx, name, opts...)
		return err
	})
	next, stop := iter.Pull2(events)
	t.Cleanup(stop)
	return watched{next, stop}
}

// until returns the events before the first one of the entry last. Equal events in a row are one.
func (w watched) until(t testing.TB, last string) (events []sandbox.FileEvent) {
	t.Helper()
	for {
		e, err, ok := w.next()
		require.True(t, ok, "the watch has ended, after the events %v", events)
		require.NoError(t, err, "after the events %v", events)
		if e.Name == last {
			return events
		}
		if len(events) == 0 || events[len(events)-1] != e {
			events = append(events, e)
		}
	}
}

// end returns the error that ends a watch.
func (w watched) end(t testing.TB) error {
	t.Helper()
	for {
		_, err, ok := w.next()
		require.True(t, ok, "the watch has ended without an error")
		if err != nil {
			_, _, more := w.next()
			require.False(t, more, "the watch goes on after its error")
			var path *fs.PathError
			require.ErrorAs(t, err, &path)
			require.Equal(t, "watch", path.Op)
			return err
		}
	}
}

// watchedDirectory watches a directory: each change of an entry is an event, in order, and changes
// below it are none.
func watchedDirectory(t *testing.T, b *box) {
	dir := b.dir(t)
	w := b.watch(t, t.Context(), dir+"/.")
	b.script(t, `cd "$1" && : > a && printf x >> a && chmod 600 a && mv a b && mkdir d && : > d/below && rm d/below && rmdir d && mv b "../moved-$$" && rm "../moved-$$" && : > "$2" && rm "$2" && : > end`,
		dir, "a\n\xff b")
	odd := "a\n\xff b"
	require.Equal(t, []sandbox.FileEvent{
		{Op: sandbox.FileCreated, Name: "a"}, {Op: sandbox.FileWritten, Name: "a"},
		{Op: sandbox.FileAttributes, Name: "a"},
		{Op: sandbox.FileRemoved, Name: "a"}, {Op: sandbox.FileCreated, Name: "b", From: "a"},
		{Op: sandbox.FileCreated, Name: "d"}, {Op: sandbox.FileRemoved, Name: "d"},
		{Op: sandbox.FileRemoved, Name: "b"},
		{Op: sandbox.FileCreated, Name: odd}, {Op: sandbox.FileRemoved, Name: odd},
	}, w.until(t, "end"))
}

// watchedFile watches a file by its name, also when the name becomes another file's. Changes of
// other files are no events.
func watchedFile(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `cd "$1" && mkdir d && : > d/f && ln -s d/f link`, dir)
	w := b.watch(t, t.Context(), dir+"/link")
	b.script(t, `cd "$1" && : > d/g && printf x >> d/f && rm d/f && : > d/f && rm d/g`, dir)
	b.writeFile(t, dir+"/link", "content", 0o600)
	for _, op := range []sandbox.FileOp{sandbox.FileWritten, sandbox.FileRemoved,
		sandbox.FileCreated, sandbox.FileWritten} {
		e, err, ok := w.next()
		require.True(t, ok)
		require.NoError(t, err)
		require.Equal(t, sandbox.FileEvent{Op: op, Name: "f"}, e)
	}
}

// watchedWrites watches writes and copies: each is one event. Their temporary files are none.
func watchedWrites(t *testing.T, b *box) {
	dir, host := b.dir(t), t.TempDir()
	write(t, host+"/copy", "content", 0o644)
	w := b.watch(t, t.Context(), dir)
	for range 2 {
		b.writeFile(t, dir+"/file", "content", 0o600)
		require.NoError(t, b.copyTo(t, host+"/copy", dir))
	}
	b.script(t, `: > "$1/end"`, dir)
	require.Equal(t, []sandbox.FileEvent{
		{Op: sandbox.FileCreated, Name: "file"}, {Op: sandbox.FileCreated, Name: "copy"},
		{Op: sandbox.FileWritten, Name: "file"}, {Op: sandbox.FileWritten, Name: "copy"},
	}, w.until(t, "end"))
}

// watchedTree watches all that is below a directory.
func watchedTree(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `cd "$1" && mkdir -p old/deep && ln -s / link`, dir)
	w := b.watch(t, t.Context(), dir, sandbox.Recursive())
	b.script(t, `cd "$1" && : > old/deep/a && printf x >> old/deep/a && mkdir old/"$2" && : > go`,
		dir, "new\n\xff")
	odd := "old/new\n\xff"
	require.Equal(t, []sandbox.FileEvent{
		{Op: sandbox.FileCreated, Name: "old/deep/a"},
		{Op: sandbox.FileWritten, Name: "old/deep/a"},
		{Op: sandbox.FileCreated, Name: odd},
	}, w.until(t, "go"))
	for range 2 {
		b.writeFile(t, dir+"/"+odd+"/file", "content", 0o600)
	}
	b.script(t, `cd "$1" && mv old/deep "$2/moved" && : > "$2/moved/b" && rm -r "$2" && : > then`,
		dir, odd)
	require.Equal(t, []sandbox.FileEvent{
		{Op: sandbox.FileCreated, Name: odd + "/file"},
		{Op: sandbox.FileWritten, Name: odd + "/file"},
		{Op: sandbox.FileRemoved, Name: "old/deep"},
		{Op: sandbox.FileCreated, Name: odd + "/moved", From: "old/deep"},
		{Op: sandbox.FileCreated, Name: odd + "/moved/b"},
	}, w.until(t, "then")[:5])
	// What a directory holds before it is watched is told once, too.
	b.script(t, `cd "$1" && mkdir -p p/q/r && : > p/q/r/s && i=0 && while [ $i -lt 300 ]; do : > p/$i; i=$((i+1)); done; : > end`,
		dir)
	seen := map[string]int{}
	for _, e := range w.until(t, "end") {
		if e.Op == sandbox.FileCreated {
			seen[e.Name]++
		}
	}
	want := map[string]int{"p": 1, "p/q": 1, "p/q/r": 1, "p/q/r/s": 1}
	for i := range 300 {
		want[fmt.Sprintf("p/%d", i)] = 1
	}
	require.Equal(t, want, seen)
	require.ErrorIs(t, b.withFiles(t, "Watch", func(ctx context.Context, f sandbox.Files) error {
		return errorOf(f.Watch(ctx, dir+"/end", sandbox.Recursive()))
	}), syscall.ENOTDIR)
	b.script(t, `rm -r "$1"`, dir)
	require.ErrorIs(t, w.end(t), fs.ErrNotExist)
}

// watchEnds ends watches, and checks their errors.
func watchEnds(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `mkdir "$1/removed" "$1/moved"`, dir)
	removed, moved := b.watch(t, t.Context(), dir+"/removed"), b.watch(t, t.Context(), dir+"/moved")
	ctx, cancel := context.WithCancel(t.Context())
	cancelled, left := b.watch(t, ctx, dir), b.watch(t, t.Context(), dir)
	b.script(t, `cd "$1" && : > removed/f && rm -r removed && mv moved elsewhere`, dir)
	_, err, ok := removed.next()
	require.True(t, ok)
	require.NoError(t, err)
	require.ErrorIs(t, removed.end(t), fs.ErrNotExist)
	require.ErrorIs(t, moved.end(t), fs.ErrNotExist)
	cancel()
	require.ErrorIs(t, cancelled.end(t), context.Canceled)
	_, err, ok = left.next()
	require.True(t, ok)
	require.NoError(t, err)
	left.stop() // as break would in a loop
	_, _, ok = left.next()
	require.False(t, ok)
}

// watchRefused calls Watch for names that it must refuse, with the errors of package os.
func watchRefused(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `cd "$1" && : > f && ln -s loop loop && mkdir locked`, dir)
	b.watch(t, t.Context(), dir) // skips the case if Watch is unsupported
	watch := func(name string) error {
		return b.withFiles(t, "Watch", func(ctx context.Context, f sandbox.Files) error {
			return errorOf(f.Watch(ctx, name))
		})
	}
	for name, want := range map[string]error{
		dir + "/none": syscall.ENOENT, dir + "/f/g": syscall.ENOTDIR, dir + "/f/": syscall.ENOTDIR,
		dir + "/loop": syscall.ELOOP, "": fs.ErrInvalid, "a\x00b": fs.ErrInvalid,
	} {
		err := watch(name)
		require.ErrorIs(t, err, want, "%q", name)
		var path *fs.PathError
		require.ErrorAs(t, err, &path)
		require.Equal(t, name, path.Path)
	}
	if !b.root(t) { // root has all permissions
		b.script(t, `chmod 300 "$1/locked"`, dir)
		require.ErrorIs(t, watch(dir+"/locked"), fs.ErrPermission)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Files().Watch(ended, dir)
	require.ErrorIs(t, err, context.Canceled)
}

// watchToClose begins two watches: a goroutine waits for an event of one. check checks that Close
// of the box has ended both. If Watch is unsupported, it does nothing.
func (b *box) watchToClose(t testing.TB) (check func()) {
	t.Helper()
	dir := b.dir(t)
	if _, err := b.Files().Watch(t.Context(), dir); errors.Is(err, errors.ErrUnsupported) {
		return func() {}
	}
	waits, unread := b.watch(t, t.Context(), dir), b.watch(t, t.Context(), dir)
	b.script(t, `: > "$1/f"`, dir)
	_, err, ok := waits.next()
	require.True(t, ok)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err, _ := waits.next()
		ended <- err
	}()
	return func() {
		require.ErrorIs(t, <-ended, sandbox.ErrClosed)
		require.ErrorIs(t, unread.end(t), sandbox.ErrClosed)
		_, err := b.Files().Watch(t.Context(), dir)
		require.ErrorIs(t, err, sandbox.ErrClosed)
	}
}
