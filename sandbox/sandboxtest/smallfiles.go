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

// smallFiles calls the methods of Files.
func smallFiles(t *testing.T, b *box) {
	b.sections(t, []section{
		{"59_Fstest", viewed},
		{"60_Content", smallContents},
		{"60_Limit", readLimits},
		{"60_Modes", modes},
		{"60_AsAWhole", asAWhole},
		{"60_Links", links},
		{"60_Open", opened},
		{"60_Symlink", symlinks},
		{"60_Rights", rights},
		{"60_AsUser", otherUsersFiles},
		{"60_Attributes", extendedAttributes},
		{"61_Names", smallNames},
		{"61_Tilde", tilde},
		{"61_Glob", globs},
		{"62_Errors", fileErrors},
		{"62_NoRegularFile", noRegularFile},
		{"63_Cancelled", cancelledFiles},
		{"63_ManyAtOnce", manyFiles},
		{"63_Close", closedFiles},
		{"64_WatchDirectory", watchedDirectory},
		{"64_WatchFile", watchedFile},
		{"64_WatchWrites", watchedWrites},
		{"64_WatchTree", watchedTree},
		{"64_WatchEnds", watchEnds},
		{"64_WatchRefused", watchRefused},
	})
}

// filesLimit is for all calls of a withFiles. fstest makes thousands.
const filesLimit = 3 * limit

// withFiles calls f in the test's goroutine, with a context of filesLimit. It skips the case if the
// error is errors.ErrUnsupported.
func (b *box) withFiles(t testing.TB, what string, f filesCall) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), filesLimit)
	defer cancel()
	err := f(ctx, b.Files())
	if errors.Is(err, errors.ErrUnsupported) {
		b.suite.skip(t, "unsupported by this box: "+what+": "+err.Error())
	}
	return err
}

// A filesCall calls a method of Files.
type filesCall func(context.Context, sandbox.Files) error

// files makes a call that must succeed.
func (b *box) files(t testing.TB, what string, f filesCall) {
	t.Helper()
	require.NoError(t, b.withFiles(t, what, f))
}

func (b *box) readFile(t testing.TB, name string) (content string) {
	t.Helper()
	b.files(t, "ReadFile", func(ctx context.Context, f sandbox.Files) error {
		data, err := f.ReadFile(ctx, name, 64<<20)
		content = string(data)
		return err
	})
	return content
}

func (b *box) writeFile(t testing.TB, name, content string, perm fs.FileMode,
	opts ...sandbox.WriteOption) {
	t.Helper()
	b.files(t, "WriteFile", func(ctx context.Context, f sandbox.Files) error {
		return f.WriteFile(ctx, name, []byte(content), perm, opts...)
	})
}

func (b *box) glob(t testing.TB, pattern string) (found []string) {
	t.Helper()
	b.files(t, "Glob", func(ctx context.Context, f sandbox.Files) (err error) {
		found, err = f.Glob(ctx, pattern)
		return err
	})
	return found
}

// readCall, writeCall, openCall, renameCall and removeAllCall return calls that may fail.

func readCall(name string) filesCall {
	return func(ctx context.Context, f sandbox.Files) error {
		return errorOf(f.ReadFile(ctx, name, 0))
	}
}

func writeCall(name string) filesCall {
	return func(ctx context.Context, f sandbox.Files) error {
		return f.WriteFile(ctx, name, []byte("x"), 0o644)
	}
}

func openCall(name string) filesCall {
	return func(ctx context.Context, f sandbox.Files) error { return errorOf(f.Open(ctx, name)) }
}

func renameCall(from, to string) filesCall {
	return func(ctx context.Context, f sandbox.Files) error { return f.Rename(ctx, from, to) }
}

func removeAllCall(name string) filesCall {
	return func(ctx context.Context, f sandbox.Files) error { return f.RemoveAll(ctx, name) }
}

// viewed runs the tests of package testing/fstest.
func viewed(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `cd "$1" && mkdir -p a/b/c 'with space' empty && printf hello > a/b/c/f && : > nothing && printf x > .hidden && ln -s a/b link && ln -s nothing flink && seq 300 > long`, dir)
	b.files(t, "TestFS", func(ctx context.Context, f sandbox.Files) error {
		if _, err := f.Stat(ctx, dir); err != nil {
			return err
		}
		return fstest.TestFS(f.FS(ctx, dir), "a/b/c/f", "with space", "empty", "nothing", ".hidden",
			"long", "link", "flink")
	})
	b.files(t, "WalkDir", func(ctx context.Context, f sandbox.Files) error {
		var walked []string
		err := fs.WalkDir(f.FS(ctx, dir), "a", func(name string, _ fs.DirEntry, err error) error {
			walked = append(walked, name)
			return err
		})
		assert.Equal(t, []string{"a", "a/b", "a/b/c", "a/b/c/f"}, walked)
		return err
	})
}

// smallContents writes and reads files.
func smallContents(t *testing.T, b *box) {
	for _, c := range []struct{ name, content string }{
		{"Text", "one\ntwo\n"}, {"Empty", ""}, {"Binary", strings.Repeat(allBytes, 10)},
		{"APacket", strings.Repeat("x", 32<<10)},
		{"50MiB", strings.Repeat(allBytes, 50<<20/256)},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := b.dir(t) + "/f"
			b.writeFile(t, f, c.content, 0o644)
			same(t, fmt.Sprintln(len(c.content)), b.script(t, `wc -c < "$1" | tr -d ' '`, f))
			same(t, c.content, b.readFile(t, f))
			b.writeFile(t, f, "short", 0o644)
			same(t, "short", b.cat(t, f))
		})
	}
	t.Run("Parents", func(t *testing.T) {
		dir := b.dir(t)
		require.ErrorIs(t, b.withFiles(t, "WriteFile", writeCall(dir+"/x/y/f")), fs.ErrNotExist)
		same(t, "", b.list(t, dir))
		b.writeFile(t, dir+"/x/y/f", "content", 0o644, sandbox.Parents())
		b.writeFile(t, dir+"/x/y/g", "content", 0o644, sandbox.Parents())
		same(t, "contentcontent", b.script(t, `cat "$1/x/y/f" "$1/x/y/g"`, dir))
		same(t, "f\ng\n", b.list(t, dir+"/x/y"))
	})
}

// readLimits reads files with a limit.
func readLimits(t *testing.T, b *box) {
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
	// the size of such a file is not known before it is read
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

// modes checks permissions: of new files, and of files that are written again.
func modes(t *testing.T, b *box) {
	dir := b.dir(t)
	mode := func(name string) string { return b.script(t, `ls -ld "$1" | cut -c1-10`, name) }
	for perm, want := range map[fs.FileMode]string{0o644: "-rw-r--r--\n", 0o600: "-rw-------\n",
		0o777: "-rwxrwxrwx\n", 0o444: "-r--r--r--\n"} {
		f := fmt.Sprintf("%s/%o", dir, perm)
		b.writeFile(t, f, "x", perm)
		same(t, want, mode(f))
		b.writeFile(t, f, "yy", 0o640) // the permissions stay
		same(t, want, mode(f))
	}
	b.script(t, `printf x > "$1/special" && chmod 2751 "$1/special"`, dir)
	before := mode(dir + "/special")
	b.writeFile(t, dir+"/special", "y", 0o600)
	same(t, before, mode(dir+"/special"))
	b.files(t, "MkdirAll", func(ctx context.Context, f sandbox.Files) error {
		if err := f.MkdirAll(ctx, dir+"/p/q", 0o750); err != nil {
			return err
		}
		return f.MkdirAll(ctx, dir+"/p/q/", 0o700) // exists already
	})
	same(t, "drwxr-x---\n", mode(dir+"/p"))
	same(t, "drwxr-x---\n", mode(dir+"/p/q"))
	b.files(t, "Stat", func(ctx context.Context, f sandbox.Files) error {
		info, err := f.Stat(ctx, dir+"/p/q")
		if err == nil {
			require.Equal(t, fs.ModeDir|0o750, info.Mode())
			require.Equal(t, "q", info.Name())
			require.False(t, info.ModTime().IsZero())
		}
		return err
	})
}

// asAWhole reads and writes a file at once: a reader sees the content of one write.
func asAWhole(t *testing.T, b *box) {
	f := b.dir(t) + "/f"
	content := func(i int) string { return strings.Repeat(string(rune('a'+i)), 300_000) }
	b.writeFile(t, f, content(0), 0o644)
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			for range 5 {
				if _, err := attempt("WriteFile", noResult(func(ctx context.Context) error {
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
					t.Errorf("error %v, and %d bytes: want the 300,000 bytes of one write", err,
						len(data))
				}
			}
		})
	}
	mixed := b.script(t, `for i in 1 2 3 4 5 6 7 8 9 10; do
	head -c 300000 "$1" | tr -s a-z | grep -v '^.$'
done; true`, f)
	wg.Wait()
	same(t, "", mixed)
	same(t, "f\n", b.list(t, path.Dir(f)))
}

// links writes, reads and removes symbolic links.
func links(t *testing.T, b *box) {
	dir := b.dir(t)
	b.script(t, `cd "$1" && mkdir d e && printf old > d/f && ln -s f d/near && ln -s ../d/near e/far && ln -s ../d/new e/dangling && ln -s loop loop && ln d/f d/hard`, dir)
	b.writeFile(t, dir+"/e/far", "new", 0o600)
	same(t, "new", b.script(t, `cat "$1/d/f"`, dir))
	same(t, "f\n", b.script(t, `readlink "$1/d/near"`, dir))
	same(t, "old", b.script(t, `cat "$1/d/hard"`, dir))
	b.writeFile(t, dir+"/e/dangling", "made", 0o600)
	same(t, "made", b.script(t, `cat "$1/d/new"`, dir))
	require.ErrorIs(t, b.withFiles(t, "WriteFile", writeCall(dir+"/loop")), syscall.ELOOP)
	b.files(t, "Lstat", func(ctx context.Context, f sandbox.Files) error {
		link, err := f.Lstat(ctx, dir+"/e/far")
		require.NoError(t, err)
		require.Equal(t, fs.ModeSymlink, link.Mode().Type())
		target, err := f.Stat(ctx, dir+"/e/far")
		require.NoError(t, err)
		require.True(t, target.Mode().IsRegular())
		entries, err := f.ReadDir(ctx, dir+"/e")
		require.NoError(t, err)
		require.Len(t, entries, 2)
		require.Equal(t, "dangling", entries[0].Name())
		require.Equal(t, fs.ModeSymlink, entries[0].Type())
		return nil
	})
	b.script(t, `cd "$1" && ln -s "$1/d" e/dir`, dir)
	b.files(t, "RemoveAll", removeAllCall(dir+"/e"))
	// the targets of its links stay
	same(t, "f\nhard\nnear\nnew\n", b.script(t, `ls "$1/d"; [ ! -e "$1/e" ]`, dir))
}

// opened uses an open file.
func opened(t *testing.T, b *box) {
	name := b.dir(t) + "/f"
	content := lines(1, 100_000)
	b.writeFile(t, name, content, 0o644)
	b.files(t, "Open", func(ctx context.Context, f sandbox.Files) error {
		opening, cancel := context.WithCancel(ctx)
		file, err := f.Open(opening, name)
		cancel() // the context of Open governs only Open
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
		require.NoError(t, f.Remove(ctx, name)) // an open file can still be read
		_, err = file.ReadAt(at, 50_000)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		_, err = file.ReadAt(at, 0)
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, file.Close(), fs.ErrClosed)
		return nil
	})
}
