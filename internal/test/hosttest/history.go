package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// A Historian is a box with histories of its directories.
type Historian interface {
	sandbox.Sandbox
	History(ctx context.Context, dir string, opts ...sandbox.HistoryOption) (sandbox.History, error)
}

// History checks the histories of a box: that its calls arrive in the box, and their answers and
// errors here. dir does not exist. Package internal/history tests what is saved.
func History(t *testing.T, box Historian, dir string) {
	ctx := t.Context()
	sh := func(script string) string {
		t.Helper()
		r, err := box.Execute(ctx, "cd '"+dir+"' && { "+script+"\n}")
		require.NoError(t, err)
		require.Zero(t, r.ExitCode, r.Output)
		return r.Output
	}
	_, err := box.History(ctx, dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, box.Files().MkdirAll(ctx, dir, 0o755))
	h, err := box.History(ctx, dir)
	require.NoError(t, err)
	sh("mkdir -p d/e; for i in 1 2 3 4 5; do echo $i >d/f$i; done; ln d/f1 g; ln -s nowhere l")
	show := "ls -lRn --time-style=full-iso 2>/dev/null || ls -lRn; cat d/* 2>/dev/null; true"
	before := sh(show)
	first, err := h.Save(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, first.ID)
	require.Equal(t, 9, first.Entries)
	require.Equal(t, before, sh(show))
	name := "d/a\n\xff"
	require.NoError(t, box.Files().WriteFile(ctx, path.Join(dir, name), []byte("x"), 0o600))
	sh("rm g; echo more >>d/f2; rm -r d/e; ln -s d e")
	changed := sh(show)
	list, err := h.Changes(ctx, first)
	require.NoError(t, err)
	require.Equal(t, []sandbox.Change{{Op: sandbox.FileCreated, Path: name},
		{Op: sandbox.FileRemoved, Path: "d/e"}, {Op: sandbox.FileWritten, Path: "d/f2"},
		{Op: sandbox.FileCreated, Path: "e"}, {Op: sandbox.FileRemoved, Path: "g"}},
		onlyFiles(list))
	saved, err := h.Back(ctx, first)
	require.NoError(t, err)
	require.Equal(t, 2, saved.ID)
	require.Equal(t, before, sh(show))
	other, err := box.History(ctx, dir+"/.") // the same
	require.NoError(t, err)
	_, err = other.Back(ctx, saved)
	require.NoError(t, err)
	require.Equal(t, changed, sh(show))
	all, err := other.Points(ctx)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.True(t, all[0].Time.Equal(first.Time), "%v %v", all[0].Time, first.Time)

	third, err := h.Save(ctx)
	require.NoError(t, err)
	require.ErrorIs(t, h.Forget(ctx, first, sandbox.Point{ID: 7}), fs.ErrNotExist)
	require.NoError(t, h.Forget(ctx, first, third))
	require.NoError(t, h.Forget(ctx))
	_, err = other.Back(ctx, first)
	require.ErrorIs(t, err, fs.ErrNotExist)
	all, err = other.Points(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, saved.ID, all[0].ID)

	_, err = h.Back(ctx, sandbox.Point{ID: 7})
	require.ErrorIs(t, err, fs.ErrNotExist)
	ended, cancel := context.WithCancelCause(ctx)
	why := errors.New("the test's reason")
	cancel(why)
	_, err = h.Save(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, why)
	small, err := box.History(ctx, dir, sandbox.HistoryLimits(3, 0))
	require.NoError(t, err)
	_, err = small.Save(ctx)
	require.ErrorContains(t, err, "more than 3 entries")
	_, err = box.History(ctx, "/")
	require.ErrorIs(t, err, fs.ErrInvalid)
	// Many changes come on many lines.
	sh("for i in $(seq 3000); do : >long-name-" + fmt.Sprintf("%0200d", 0) + "-$i; done")
	list, err = h.Changes(ctx, saved)
	require.NoError(t, err)
	require.Len(t, list, 3000)
	_, err = h.Back(ctx, saved)
	require.NoError(t, err)
	require.Equal(t, changed, sh(show))
}

// onlyFiles leaves out what a hard link's other name has changed with it.
func onlyFiles(list []sandbox.Change) (kept []sandbox.Change) {
	for _, c := range list {
		if c.Op != sandbox.FileAttributes {
			kept = append(kept, c)
		}
	}
	return kept
}
