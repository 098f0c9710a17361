package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// noRegularFile reads and writes a FIFO and a device, which Files refuses at once.
func noRegularFile(t *testing.T, b *box) {
	b.need(t, "mkfifo")
	dir := b.dir(t)
	b.script(t, `mkfifo "$1/fifo"`, dir)
	for _, name := range []string{dir + "/fifo", "/dev/null"} {
		for what, call := range map[string]filesCall{"ReadFile": readCall(name),
			"Open": openCall(name), "WriteFile": writeCall(name)} {
			require.ErrorIs(t, b.withFiles(t, what, call), fs.ErrInvalid, "%s(%s)", what, name)
		}
	}
	same(t, "fifo\n", b.script(t, `ls -A "$1" && [ -p "$1/fifo" ] && [ -c /dev/null ]`, dir))
}

// cancelledFiles cancels calls before they begin and while they run. They leave nothing.
func cancelledFiles(t *testing.T, b *box) {
	dir := b.dir(t)
	b.writeFile(t, dir+"/f", "old", 0o644)
	before, cancel := context.WithCancel(context.Background())
	cancel()
	files := b.Files()
	for what, err := range map[string]error{
		"WriteFile": files.WriteFile(before, dir+"/f", []byte("new"), 0o644),
		"Remove":    files.Remove(before, dir+"/f"),
		"MkdirAll":  files.MkdirAll(before, dir+"/d", 0o755),
		"Rename":    files.Rename(before, dir+"/f", dir+"/g"),
	} {
		require.ErrorIs(t, err, context.Canceled, what)
	}
	same(t, "f\n", b.list(t, dir))
	content := bytes.Repeat([]byte("new"), 10<<20)
	for i := range 8 {
		ctx, cancel := context.WithTimeout(context.Background(),
			time.Duration(i)*4*time.Millisecond)
		_, err := attempt("WriteFile", noResult(func(context.Context) error {
			return files.WriteFile(ctx, dir+"/f", content, 0o644)
		}))
		cancel()
		size := b.script(t, `ls -A "$1" && wc -c < "$1/f" | tr -d ' '`, dir)
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			same(t, "f\n3\n", size)
		} else {
			same(t, fmt.Sprintf("f\n%d\n", len(content)), size)
			b.writeFile(t, dir+"/f", "old", 0o644)
		}
		b.readFile(t, dir+"/f") // the next call succeeds
	}
}

// manyFiles makes many calls at once.
func manyFiles(t *testing.T, b *box) {
	dir := b.dir(t)
	b.writeFile(t, dir+"/0", "", 0o644) // skips the case if Files is unsupported
	require.NoError(t, together(50, func(i int) error {
		name, content := fmt.Sprintf("%s/%d", dir, i), strings.Repeat(fmt.Sprint(i), 1000*i)
		return errorOf(attempt("Files", noResult(func(ctx context.Context) error {
			f := b.Files()
			if err := f.WriteFile(ctx, name, []byte(content), 0o644); err != nil {
				return err
			}
			data, err := f.ReadFile(ctx, name, 0)
			if err == nil && string(data) != content {
				err = fmt.Errorf("%s: %s", name, firstDifference(content, string(data)))
			}
			if err == nil {
				_, err = f.ReadDir(ctx, dir)
			}
			return err
		})))
	}))
	same(t, "50\n", b.script(t, `ls -A "$1" | wc -l | tr -d ' '`, dir))
}

// closedFiles closes a box, which ends calls, open files and watches.
func closedFiles(t *testing.T, shared *box) {
	b, witness := shared.suite.doomed(t)
	dir := b.dir(t)
	b.writeFile(t, dir+"/f", "content", 0o644)
	var file sandbox.File
	b.files(t, "Open", func(ctx context.Context, f sandbox.Files) (err error) {
		file, err = f.Open(ctx, dir+"/f")
		return err
	})
	closedWatches := b.watchToClose(t)
	files := b.Files()
	content := bytes.Repeat([]byte("x"), 40<<20)
	underWay := make(chan error, 4)
	for i := range cap(underWay) {
		go func() {
			_, err := attempt("WriteFile", noResult(func(ctx context.Context) error {
				for ctx.Err() == nil {
					if err := files.WriteFile(ctx, fmt.Sprintf("%s/%d", dir, i), content,
						0o644); err != nil {
						return err
					}
				}
				return ctx.Err()
			}))
			underWay <- err
		}()
	}
	b.eventually(t, func() bool {
		return strings.Contains(b.list(t, dir), ".sandshell-")
	}, "a write under way")
	b.mustClose(t)
	for range cap(underWay) {
		require.ErrorIs(t, <-underWay, sandbox.ErrClosed)
	}
	closedWatches()
	require.ErrorIs(t, errorOf(file.ReadAt(make([]byte, 1), 0)), sandbox.ErrClosed)
	file.Close()
	for what, call := range map[string]filesCall{"ReadFile": readCall(dir + "/f"),
		"WriteFile": writeCall(dir + "/f"), "Open": openCall(dir + "/f"),
		"Glob": func(ctx context.Context, f sandbox.Files) error {
			return errorOf(f.Glob(ctx, "*"))
		},
		"FS": func(ctx context.Context, f sandbox.Files) error {
			return errorOf(f.FS(ctx, dir).Open("f"))
		},
	} {
		require.ErrorIs(t, b.withFiles(t, what, call), sandbox.ErrClosed, what)
	}
	// if both boxes are on one machine, the witness can look
	if code, _, _ := witness.sh(t, `[ -d "$1" ]`, dir); code == 0 {
		require.NotContains(t, witness.script(t, `ls -A "$1"`, dir), ".sandshell-")
	}
}
