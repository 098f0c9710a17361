package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// smallFiles: what Files does, beside copies.
func smallFiles(t *testing.T, b *box) {
	t.Run("59_Fstest", func(t *testing.T) { viewed(t, b) })
	t.Run("60_Content", func(t *testing.T) { smallContents(t, b) })
	t.Run("60_Limit", func(t *testing.T) { readLimits(t, b) })
	t.Run("60_Modes", func(t *testing.T) { modes(t, b) })
	t.Run("60_AsAWhole", func(t *testing.T) { asAWhole(t, b) })
	t.Run("60_Links", func(t *testing.T) { links(t, b) })
	t.Run("60_Open", func(t *testing.T) { opened(t, b) })
	t.Run("61_Names", func(t *testing.T) { smallNames(t, b) })
	t.Run("61_Tilde", func(t *testing.T) { tilde(t, b) })
	t.Run("61_Glob", func(t *testing.T) { globs(t, b) })
	t.Run("62_Errors", func(t *testing.T) { fileErrors(t, b) })
	t.Run("62_NoRegularFile", func(t *testing.T) { noRegularFile(t, b) })
	t.Run("63_Cancelled", func(t *testing.T) { cancelledFiles(t, b) })
	t.Run("63_ManyAtOnce", func(t *testing.T) { manyFiles(t, b) })
	t.Run("63_Close", func(t *testing.T) { b.suite.closedFiles(t) })
	t.Run("64_WatchDirectory", func(t *testing.T) { watchedDirectory(t, b) })
	t.Run("64_WatchFile", func(t *testing.T) { watchedFile(t, b) })
	t.Run("64_WatchWrites", func(t *testing.T) { watchedWrites(t, b) })
	t.Run("64_WatchEnds", func(t *testing.T) { watchEnds(t, b) })
	t.Run("64_WatchRefused", func(t *testing.T) { watchRefused(t, b) })
}

// filesLimit is for all the calls of a withFiles: fstest makes thousands, one after the other.
const filesLimit = 3 * limit

// withFiles calls f, which has a context of filesLimit, in the test's own goroutine: f may end the
// test. It skips the case if the sandbox has no way to its files.
func (b *box) withFiles(t testing.TB, what string,
	f func(context.Context, sandbox.Files) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), filesLimit)
	defer cancel()
	err := f(ctx, b.Files())
	if errors.Is(err, errors.ErrUnsupported) {
		b.suite.skip(t, "unsupported by this box: "+what+": "+err.Error())
	}
	return err
}

func (b *box) readFile(t testing.TB, name string) string {
	t.Helper()
	var data []byte
	require.NoError(t, b.withFiles(t, "ReadFile", func(ctx context.Context,
		f sandbox.Files) (err error) {
		data, err = f.ReadFile(ctx, name, 64<<20)
		return err
	}))
	return string(data)
}

func (b *box) writeFile(t testing.TB, name, content string, perm fs.FileMode,
	opts ...sandbox.WriteOption) {
	t.Helper()
	require.NoError(t, b.withFiles(t, "WriteFile", func(ctx context.Context,
		f sandbox.Files) error {
		return f.WriteFile(ctx, name, []byte(content), perm, opts...)
	}))
}

// viewed: the standard library's own suite.
func viewed(t *testing.T, b *box) {
	t.Parallel()
	dir := b.dir(t)
	b.script(t, `cd "$1" && mkdir -p a/b/c 'with space' empty && printf hello > a/b/c/f && : > nothing && printf x > .hidden && ln -s a/b link && ln -s nothing flink && seq 300 > long`, dir)
	require.NoError(t, b.withFiles(t, "TestFS", func(ctx context.Context, f sandbox.Files) error {
		if _, err := f.Stat(ctx, dir); err != nil {
			return err
		}
		return fstest.TestFS(f.FS(ctx, dir), "a/b/c/f", "with space", "empty", "nothing", ".hidden",
			"long", "link", "flink")
	}))
	require.NoError(t, b.withFiles(t, "WalkDir", func(ctx context.Context, f sandbox.Files) error {
		var walked []string
		err := fs.WalkDir(f.FS(ctx, dir), "a", func(name string, _ fs.DirEntry, err error) error {
			walked = append(walked, name)
			return err
		})
		assert.Equal(t, []string{"a", "a/b", "a/b/c", "a/b/c/f"}, walked)
		return err
	}))
}

func smallContents(t *testing.T, b *box) {
	t.Parallel()
	var all strings.Builder
	for i := range 256 {
		all.WriteByte(byte(i))
	}
	for _, c := range []struct{ name, content string }{
		{"Text", "one\ntwo\n"}, {"Empty", ""}, {"Binary", strings.Repeat(all.String(), 10)},
		{"APacket", strings.Repeat("x", 32<<10)},
		{"50MiB", strings.Repeat(all.String(), 50<<20/256)},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := b.dir(t) + "/f"
			b.writeFile(t, f, c.content, 0o644)
			same(t, fmt.Sprintln(len(c.content)), b.script(t, `wc -c < "$1" | tr -d ' '`, f))
			same(t, c.content, b.readFile(t, f))
			b.writeFile(t, f, "short", 0o644)
			same(t, "short", b.script(t, `cat "$1"`, f))
		})
	}
	t.Run("Parents", func(t *testing.T) {
		dir := b.dir(t)
		err := b.withFiles(t, "WriteFile", func(ctx context.Context, f sandbox.Files) error {
			return f.WriteFile(ctx, dir+"/x/y/f", []byte("content"), 0o644)
		})
		require.ErrorIs(t, err, fs.ErrNotExist)
		same(t, "", b.script(t, `ls -A "$1"`, dir))
		b.writeFile(t, dir+"/x/y/f", "content", 0o644, sandbox.Parents())
		b.writeFile(t, dir+"/x/y/g", "content", 0o644, sandbox.Parents())
		same(t, "contentcontent", b.script(t, `cat "$1/x/y/f" "$1/x/y/g"`, dir))
		same(t, "f\ng\n", b.script(t, `ls -A "$1"`, dir+"/x/y"))
	})
}

func readLimits(t *testing.T, b *box) {
	t.Parallel()
	f := b.dir(t) + "/f"
	b.script(t, `head -c 100000 /dev/zero > "$1"`, f)
	read := func(name string, limit int64) (n int, err error) {
		err = b.withFiles(t, "ReadFile", func(ctx context.Context, files sandbox.Files) error {
			data, err := files.ReadFile(ctx, name, limit)
			n = len(data)
			return err
		})
		return n, err
	}
	for _, limit := range []int64{0, 100_000, 1 << 40} {
		n, err := read(f, limit)
		require.NoError(t, err)
		require.Equal(t, 100_000, n)
	}
	_, err := read(f, 99_999)
	var large *sandbox.TooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, sandbox.TooLargeError{Name: f, Size: 100_000, Limit: 99_999}, *large)
	// a file without a size
	if code, _, _ := b.sh(t,
		`[ -r /proc/self/status ] && [ $(wc -c < /proc/self/status) -gt 100 ]`); code == 0 {
		n, err := read("/proc/self/status", 1<<20)
		require.NoError(t, err)
		require.Greater(t, n, 100)
		_, err = read("/proc/self/status", 100)
		require.ErrorAs(t, err, &large)
		require.Equal(t, int64(-1), large.Size)
	}
}

func modes(t *testing.T, b *box) {
	t.Parallel()
	dir := b.dir(t)
	mode := func(name string) string { return b.script(t, `ls -ld "$1" | cut -c1-10`, name) }
	for perm, want := range map[fs.FileMode]string{0o644: "-rw-r--r--\n", 0o600: "-rw-------\n",
		0o777: "-rwxrwxrwx\n", 0o444: "-r--r--r--\n"} {
		f := fmt.Sprintf("%s/%o", dir, perm)
		b.writeFile(t, f, "x", perm)
		same(t, want, mode(f))
		b.writeFile(t, f, "yy", 0o640) // keeps what it has
		same(t, want, mode(f))
	}
	b.script(t, `printf x > "$1/special" && chmod 2751 "$1/special"`, dir)
	before := mode(dir + "/special")
	b.writeFile(t, dir+"/special", "y", 0o600)
	same(t, before, mode(dir+"/special"))
	require.NoError(t, b.withFiles(t, "MkdirAll", func(ctx context.Context, f sandbox.Files) error {
		if err := f.MkdirAll(ctx, dir+"/p/q", 0o750); err != nil {
			return err
		}
		return f.MkdirAll(ctx, dir+"/p/q/", 0o700) // is there
	}))
	same(t, "drwxr-x---\n", mode(dir+"/p"))
	same(t, "drwxr-x---\n", mode(dir+"/p/q"))
	require.NoError(t, b.withFiles(t, "Stat", func(ctx context.Context, f sandbox.Files) error {
		info, err := f.Stat(ctx, dir+"/p/q")
		if err == nil {
			require.Equal(t, fs.ModeDir|0o750, info.Mode())
			require.Equal(t, "q", info.Name())
			require.False(t, info.ModTime().IsZero())
		}
		return err
	}))
}

// asAWhole: a reader sees all of one content, whoever writes meanwhile.
func asAWhole(t *testing.T, b *box) {
	t.Parallel()
	f := b.dir(t) + "/f"
	content := func(i int) string { return strings.Repeat(string(rune('a'+i)), 300_000) }
	b.writeFile(t, f, content(0), 0o644)
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			for range 5 {
				if _, err := attempt("WriteFile", empty(func(ctx context.Context) error {
					return b.Files().WriteFile(ctx, f, []byte(content(i)), 0o644)
				})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 10 {
				data, err := attempt("ReadFile", func(ctx context.Context) ([]byte, error) {
					return b.Files().ReadFile(ctx, f, 0)
				})
				if err != nil || len(data) != 300_000 || bytes.Count(data, data[:1]) != len(data) {
					t.Errorf("%v, %d bytes, not all the same", err, len(data))
				}
			}
		})
	}
	_, torn, _ := b.sh(t,
		`for i in 1 2 3 4 5 6 7 8 9 10; do head -c 300000 "$1" | tr -s a-z | grep -v '^.$'; done; true`, f)
	wg.Wait()
	same(t, "", torn)
	same(t, "f\n", b.script(t, `ls -A "$1"`, path.Dir(f)))
}

func links(t *testing.T, b *box) {
	t.Parallel()
	dir := b.dir(t)
	b.script(t, `cd "$1" && mkdir d e && printf old > d/f && ln -s f d/near && ln -s ../d/near e/far && ln -s ../d/new e/dangling && ln -s loop loop && ln d/f d/hard`, dir)
	b.writeFile(t, dir+"/e/far", "new", 0o600)
	same(t, "new", b.script(t, `cat "$1/d/f"`, dir))
	same(t, "f\n", b.script(t, `readlink "$1/d/near"`, dir))
	same(t, "old", b.script(t, `cat "$1/d/hard"`, dir))
	b.writeFile(t, dir+"/e/dangling", "made", 0o600)
	same(t, "made", b.script(t, `cat "$1/d/new"`, dir))
	require.ErrorIs(t, b.withFiles(t, "WriteFile", func(ctx context.Context,
		f sandbox.Files) error {
		return f.WriteFile(ctx, dir+"/loop", nil, 0o600)
	}), syscall.ELOOP)
	require.NoError(t, b.withFiles(t, "Lstat", func(ctx context.Context, f sandbox.Files) error {
		link, err := f.Lstat(ctx, dir+"/e/far")
		require.NoError(t, err)
		require.Equal(t, fs.ModeSymlink, link.Mode().Type())
		led, err := f.Stat(ctx, dir+"/e/far")
		require.NoError(t, err)
		require.True(t, led.Mode().IsRegular())
		entries, err := f.ReadDir(ctx, dir+"/e")
		require.NoError(t, err)
		require.Len(t, entries, 2)
		require.Equal(t, "dangling", entries[0].Name())
		require.Equal(t, fs.ModeSymlink, entries[0].Type())
		return nil
	}))
	b.script(t, `cd "$1" && ln -s "$1/d" e/dir`, dir)
	require.NoError(t, b.withFiles(t, "RemoveAll", func(ctx context.Context,
		f sandbox.Files) error {
		return f.RemoveAll(ctx, dir+"/e")
	}))
	// and nothing of where its links led
	same(t, "f\nhard\nnear\nnew\n", b.script(t, `ls "$1/d"; [ ! -e "$1/e" ]`, dir))
}

func opened(t *testing.T, b *box) {
	t.Parallel()
	name := b.dir(t) + "/f"
	content := lines(1, 100_000)
	b.writeFile(t, name, content, 0o644)
	require.NoError(t, b.withFiles(t, "Open", func(ctx context.Context, f sandbox.Files) error {
		opening, cancel := context.WithCancel(ctx)
		file, err := f.Open(opening, name)
		cancel() // was for opening
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		require.NoError(t, err)
		require.Equal(t, int64(len(content)), info.Size())
		at := make([]byte, 1000)
		_, err = file.ReadAt(at, 50_000)
		require.NoError(t, err)
		same(t, content[50_000:51_000], string(at))
		all, err := io.ReadAll(file)
		require.NoError(t, err)
		same(t, content, string(all))
		_, err = file.Seek(-5, io.SeekEnd)
		require.NoError(t, err)
		rest, err := io.ReadAll(file)
		require.NoError(t, err)
		same(t, content[len(content)-5:], string(rest))
		_, err = file.Seek(-1, io.SeekStart)
		require.Error(t, err)
		require.NoError(t, f.Remove(ctx, name)) // an open file stays
		_, err = file.ReadAt(at, 50_000)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		_, err = file.ReadAt(at, 0)
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, file.Close(), fs.ErrClosed)
		return nil
	}))
}

func fileErrors(t *testing.T, b *box) {
	t.Parallel()
	dir := b.dir(t)
	b.script(t, `cd "$1" && mkdir -p d/e empty && : > f && : > d/f`, dir)
	long := dir + "/" + strings.Repeat("x", 256)
	read := func(name string) func(context.Context, sandbox.Files) error {
		return func(ctx context.Context, f sandbox.Files) error {
			_, err := f.ReadFile(ctx, name, 0)
			return err
		}
	}
	write := func(name string) func(context.Context, sandbox.Files) error {
		return func(ctx context.Context, f sandbox.Files) error {
			return f.WriteFile(ctx, name, []byte("x"), 0o644)
		}
	}
	rename := func(from, to string) func(context.Context, sandbox.Files) error {
		return func(ctx context.Context, f sandbox.Files) error { return f.Rename(ctx, from, to) }
	}
	for _, c := range []struct {
		what string
		want error
		call func(context.Context, sandbox.Files) error
	}{
		{"read nothing", syscall.ENOENT, read(dir + "/none")},
		{"read below nothing", syscall.ENOENT, read(dir + "/none/f")},
		{"read below a file", syscall.ENOTDIR, read(dir + "/f/g")},
		{"read a directory", syscall.EISDIR, read(dir + "/d")},
		{"open a directory", syscall.EISDIR, func(ctx context.Context, f sandbox.Files) error {
			_, err := f.Open(ctx, dir+"/d")
			return err
		}},
		{"write below nothing", syscall.ENOENT, write(dir + "/none/f")},
		{"write below a file", syscall.ENOTDIR, write(dir + "/f/g")},
		{"write a directory", syscall.EISDIR, write(dir + "/d")},
		{"write a new directory", syscall.EISDIR, write(dir + "/new/")},
		{"write a name that is too long", syscall.ENAMETOOLONG, write(long)},
		{"stat nothing", syscall.ENOENT, func(ctx context.Context, f sandbox.Files) error {
			_, err := f.Stat(ctx, dir+"/none")
			return err
		}},
		{"lstat nothing", syscall.ENOENT, func(ctx context.Context, f sandbox.Files) error {
			_, err := f.Lstat(ctx, dir+"/none")
			return err
		}},
		{"list nothing", syscall.ENOENT, func(ctx context.Context, f sandbox.Files) error {
			_, err := f.ReadDir(ctx, dir+"/none")
			return err
		}},
		{"list a file", syscall.ENOTDIR, func(ctx context.Context, f sandbox.Files) error {
			_, err := f.ReadDir(ctx, dir+"/f")
			return err
		}},
		{"make a directory of a file", syscall.ENOTDIR,
			func(ctx context.Context, f sandbox.Files) error {
				return f.MkdirAll(ctx, dir+"/f", 0o755)
			}},
		{"make a directory below a file", syscall.ENOTDIR,
			func(ctx context.Context, f sandbox.Files) error {
				return f.MkdirAll(ctx, dir+"/f/x", 0o755)
			}},
		{"remove nothing", syscall.ENOENT, func(ctx context.Context, f sandbox.Files) error {
			return f.Remove(ctx, dir+"/none")
		}},
		{"remove a full directory", syscall.ENOTEMPTY,
			func(ctx context.Context, f sandbox.Files) error { return f.Remove(ctx, dir+"/d") }},
		{"rename nothing", syscall.ENOENT, rename(dir+"/none", dir+"/x")},
		{"rename to below nothing", syscall.ENOENT, rename(dir+"/f", dir+"/none/x")},
		{"rename a directory to a file", syscall.ENOTDIR, rename(dir+"/empty", dir+"/f")},
		{"rename a file to a directory", fs.ErrExist, rename(dir+"/f", dir+"/empty")},
		{"rename to a full directory", fs.ErrExist, rename(dir+"/empty", dir+"/d")},
		{"no name", fs.ErrInvalid, read("")},
		{"NUL", fs.ErrInvalid, write(dir + "/a\x00b")},
	} {
		err := b.withFiles(t, c.what, c.call)
		var path *fs.PathError
		var link interface{ Unwrap() error }
		switch {
		case !errors.Is(err, c.want):
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		case !errors.As(err, &path) && !errors.As(err, &link):
			t.Errorf("%s: %T", c.what, err)
		}
	}
	require.NoError(t, b.withFiles(t, "RemoveAll", func(ctx context.Context,
		f sandbox.Files) error {
		return f.RemoveAll(ctx, dir+"/none/x")
	}))
	same(t, "d\nempty\nf\n", b.script(t, `ls -A "$1"`, dir)) // of what failed nothing is left
	if b.root(t) {
		return // who may do everything
	}
	b.script(t, `cd "$1" && mkdir locked && : > locked/f && : > secret && chmod 000 locked secret`,
		dir)
	defer b.script(t, `chmod 700 "$1/locked" "$1/secret"`, dir)
	require.ErrorIs(t, b.withFiles(t, "ReadFile", read(dir+"/secret")), fs.ErrPermission)
	require.ErrorIs(t, b.withFiles(t, "ReadFile", read(dir+"/locked/f")), fs.ErrPermission)
	require.ErrorIs(t, b.withFiles(t, "WriteFile", write(dir+"/locked/g")), fs.ErrPermission)
	require.ErrorIs(t, b.withFiles(t, "Rename", rename(dir+"/f", dir+"/locked/g")),
		fs.ErrPermission)
	require.ErrorIs(t, b.withFiles(t, "RemoveAll", func(ctx context.Context,
		f sandbox.Files) error {
		return f.RemoveAll(ctx, dir+"/locked")
	}), fs.ErrPermission)
	require.NoError(t, b.withFiles(t, "Glob", func(ctx context.Context, f sandbox.Files) error {
		found, err := f.Glob(ctx, dir+"/*/f")
		require.Equal(t, []string{dir + "/d/f"}, found)
		return err
	}))
}
