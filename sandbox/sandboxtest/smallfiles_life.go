package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// noRegularFile: what would wait for somebody else, or is no file at all, is refused at once.
func noRegularFile(t *testing.T, b *box) {
	t.Parallel()
	b.need(t, "mkfifo")
	dir := b.dir(t)
	b.script(t, `mkfifo "$1/fifo"`, dir)
	for _, name := range []string{dir + "/fifo", "/dev/null"} {
		require.ErrorIs(t, b.withFiles(t, "ReadFile", func(ctx context.Context,
			f sandbox.Files) error {
			_, err := f.ReadFile(ctx, name, 0)
			return err
		}), fs.ErrInvalid)
		require.ErrorIs(t, b.withFiles(t, "Open", func(ctx context.Context, f sandbox.Files) error {
			_, err := f.Open(ctx, name)
			return err
		}), fs.ErrInvalid)
		require.ErrorIs(t, b.withFiles(t, "WriteFile",
			func(ctx context.Context, f sandbox.Files) error {
				return f.WriteFile(ctx, name, []byte("x"), 0o644)
			}), fs.ErrInvalid)
	}
	same(t, "fifo\n", b.script(t, `ls -A "$1" && [ -p "$1/fifo" ] && [ -c /dev/null ]`, dir))
}

// cancelledFiles: a cancelled write leaves nothing, whenever it is cancelled.
func cancelledFiles(t *testing.T, b *box) {
	t.Parallel()
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
	same(t, "f\n", b.script(t, `ls -A "$1"`, dir))
	content := bytes.Repeat([]byte("new"), 10<<20)
	for i := range 8 {
		ctx, cancel := context.WithTimeout(context.Background(),
			time.Duration(i)*4*time.Millisecond)
		_, err := attempt("WriteFile", empty(func(context.Context) error {
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
		b.readFile(t, dir+"/f") // the next call works
	}
}

func manyFiles(t *testing.T, b *box) {
	t.Parallel()
	dir := b.dir(t)
	b.writeFile(t, dir+"/0", "", 0o644) // or there is no way to the files
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			name, content := fmt.Sprintf("%s/%d", dir, i), strings.Repeat(fmt.Sprint(i), 1000*i)
			_, err := attempt("Files", empty(func(ctx context.Context) error {
				f := b.Files()
				if err := f.WriteFile(ctx, name, []byte(content), 0o644); err != nil {
					return err
				}
				data, err := f.ReadFile(ctx, name, 0)
				if err == nil && string(data) != content {
					err = fmt.Errorf("%s: other content", name)
				}
				if err == nil {
					_, err = f.ReadDir(ctx, dir)
				}
				return err
			}))
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	same(t, "50\n", b.script(t, `ls -A "$1" | wc -l | tr -d ' '`, dir))
}

// closedFiles: Close ends calls, open files and watches.
func (s *suite) closedFiles(t *testing.T) {
	t.Parallel()
	b, witness := s.doomed(t)
	dir := b.dir(t)
	b.writeFile(t, dir+"/f", "content", 0o644)
	var file sandbox.File
	require.NoError(t, b.withFiles(t, "Open", func(ctx context.Context,
		f sandbox.Files) (err error) {
		file, err = f.Open(ctx, dir+"/f")
		return err
	}))
	closedWatches := b.watchToClose(t)
	files := b.Files()
	content := bytes.Repeat([]byte("x"), 40<<20)
	underWay := make(chan error, 4)
	for i := range cap(underWay) {
		go func() {
			_, err := attempt("WriteFile", empty(func(ctx context.Context) error {
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
		return strings.Contains(b.script(t, `ls -A "$1"`, dir), ".sandshell-")
	}, "a write under way")
	_, err := within(b, t, "Close", empty(func(context.Context) error { return b.Close() }))
	require.NoError(t, err)
	for range cap(underWay) {
		require.ErrorIs(t, <-underWay, sandbox.ErrClosed)
	}
	closedWatches()
	_, err = file.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, sandbox.ErrClosed)
	file.Close()
	for what, call := range map[string]func(context.Context) error{
		"ReadFile": func(ctx context.Context) error {
			_, err := files.ReadFile(ctx, dir+"/f", 0)
			return err
		},
		"WriteFile": func(ctx context.Context) error {
			return files.WriteFile(ctx, dir+"/f", nil, 0o644)
		},
		"Glob": func(ctx context.Context) error {
			_, err := b.Files().Glob(ctx, "*")
			return err
		},
		"FS": func(ctx context.Context) error {
			_, err := files.FS(ctx, dir).Open("f")
			return err
		},
		"Open": func(ctx context.Context) error {
			_, err := files.Open(ctx, dir+"/f")
			return err
		},
	} {
		_, err := within(b, t, what, empty(call))
		require.ErrorIs(t, err, sandbox.ErrClosed, what)
	}
	// one machine: what was under way has left nothing
	if code, _, _ := witness.sh(t, `[ -d "$1" ]`, dir); code == 0 {
		require.NotContains(t, witness.script(t, `ls -A "$1"`, dir), ".sandshell-")
	}
}
