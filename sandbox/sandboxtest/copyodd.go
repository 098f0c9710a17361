package sandboxtest

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// copyErrors makes copies that must fail, and checks that they leave nothing.
func copyErrors(t *testing.T, b *box) {
	host, dir := t.TempDir(), b.dir(t)
	write(t, host+"/f", "content", 0o644)
	t.Run("MissingSource", func(t *testing.T) {
		err := b.copyTo(t, host+"/nothing", dir+"/x")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, "nothing")
		err = b.copyFrom(t, dir+"/nothing", host+"/x")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, "nothing")
		require.NoFileExists(t, host+"/x")
		same(t, "", b.list(t, dir))
	})
	t.Run("Typed", func(t *testing.T) {
		var path *fs.PathError
		require.ErrorAs(t, b.copyTo(t, host+"/nothing", dir+"/x"), &path)
		require.ErrorAs(t, b.copyFrom(t, dir+"/nothing", host+"/x"), &path)
		require.ErrorAs(t, b.copyTo(t, host+"/f", dir+"/no/such/f"), &path)
	})
	t.Run("Permission", func(t *testing.T) {
		b.needNoRoot(t)
		b.script(t, `mkdir "$1/locked" && : > "$1/secret" && chmod 000 "$1/locked" "$1/secret"`,
			dir)
		defer b.script(t, `chmod 700 "$1/locked" "$1/secret" && rm -rf "$1/locked" "$1/secret"`,
			dir)
		require.ErrorIs(t, b.copyTo(t, host+"/f", dir+"/locked/f"), fs.ErrPermission)
		require.ErrorIs(t, b.copyFrom(t, dir+"/secret", host+"/x"), fs.ErrPermission)
		require.NoFileExists(t, host+"/x")
	})
	t.Run("CancelledBefore", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := within(b, t, "CopyTo", noResult(func(context.Context) error {
			return b.CopyTo(ctx, host+"/f", dir+"/cancelled")
		}))
		require.ErrorIs(t, err, context.Canceled)
		same(t, "", b.list(t, dir))
	})
}

// odd copies special files, links with a slash, unreadable files, and files without a size.
func odd(t *testing.T, b *box) {
	host, dir := t.TempDir(), b.dir(t)
	write(t, host+"/f", "content", 0o644)
	// Special files are not replaced.
	t.Run("Special", func(t *testing.T) {
		b.script(t, `mkfifo "$1/fifo" && echo x >"$1/f"`, dir)
		require.ErrorIs(t, b.copyTo(t, host+"/f", dir+"/fifo"), fs.ErrInvalid)
		require.ErrorIs(t, b.copyTo(t, host+"/f", "/dev/null"), fs.ErrInvalid)
		require.ErrorIs(t, b.copyFrom(t, dir+"/f", "/dev/null"), fs.ErrInvalid)
		same(t, "f\nfifo\n", b.script(t, `[ -c /dev/null ] && [ -p "$1/fifo" ] && ls -A "$1"`, dir))
	})
	// A path that ends in a slash is that of a directory.
	t.Run("Slash", func(t *testing.T) {
		b.script(t, `mkdir "$1/real" && echo x >"$1/real/f" && ln -s real "$1/link"`, dir)
		require.NoError(t, b.copyFrom(t, dir+"/link/", host+"/copy"))
		hasContent(t, host+"/copy/f", "x\n")
		require.NoError(t, os.Mkdir(host+"/in", 0o755))
		require.NoError(t, b.copyFrom(t, dir+"/link/", host+"/in"))
		hasContent(t, host+"/in/link/f", "x\n")
		require.NoError(t, os.Symlink("copy", host+"/link"))
		require.NoError(t, b.copyTo(t, host+"/link/", dir+"/back/"))
		same(t, "x\n", b.script(t, `cat "$1/back/f"`, dir))
		require.ErrorIs(t, b.copyFrom(t, dir+"/real/f/", host+"/none"), syscall.ENOTDIR)
		require.ErrorIs(t, b.copyTo(t, host+"/f", dir+"/none/"), syscall.ENOTDIR)
		require.ErrorIs(t, b.copyTo(t, host+"/f", dir+"/real/f/"), syscall.ENOTDIR)
		require.ErrorIs(t, b.copyFrom(t, dir+"/real/f", host+"/none/"), syscall.ENOTDIR)
		_, err := b.Files().ReadFile(t.Context(), dir+"/real/f/", 0)
		require.ErrorIs(t, err, syscall.ENOTDIR)
		require.NoError(t, b.Files().RemoveAll(t.Context(), dir+"/link/")) // only the link
		same(t, "x\n", b.script(t, `[ ! -L "$1/link" ] && cat "$1/real/f"`, dir))
	})
	// Unreadable files are left out, and CopyError lists them.
	t.Run("Unreadable", func(t *testing.T) {
		b.needNoRoot(t)
		b.script(t, `mkdir -p "$1/some/shut" && cd "$1/some" && echo a >a && echo b >no && echo c >z && chmod 0 no shut`, dir)
		defer b.script(t, `chmod 700 "$1/some/shut"`, dir)
		var left *sandbox.CopyError
		require.ErrorAs(t, b.copyFrom(t, dir+"/some", host+"/some"), &left)
		hasContent(t, host+"/some/z", "c\n")
		require.Equal(t, 2, left.Count, "%v", left.Skipped)
		for i, name := range []string{"/some/no", "/some/shut"} {
			require.Equal(t, dir+name, strings.TrimSuffix(left.Skipped[i].Path, "/"))
			require.ErrorIs(t, left.Skipped[i], fs.ErrPermission)
		}
		require.NoError(t, os.Chmod(host+"/some/shut", 0o700))
	})
	t.Run("Sizeless", func(t *testing.T) {
		for _, name := range []string{"/proc/version",
			"/sys/kernel/mm/transparent_hugepage/enabled"} {
			if code, _, _ := b.sh(t, `cat "$1"`, name); code != 0 {
				continue // not Linux
			}
			require.NoError(t, b.copyFrom(t, name, host+"/sizeless"))
			hasContent(t, host+"/sizeless", b.cat(t, name))
		}
	})
	t.Run("Holes", func(t *testing.T) {
		b.script(t, `dd if=/dev/null of="$1/holes" bs=1048576 seek=256 2>/dev/null; echo end >>"$1/holes"`, dir)
		require.NoError(t, b.copyFrom(t, dir+"/holes", host+"/holes"))
		info, err := os.Stat(host + "/holes")
		require.NoError(t, err)
		require.EqualValues(t, 256<<20+4, info.Size())
		if used, ok := blocks(info); ok {
			require.Less(t, used, int64(1<<20))
		}
	})
}

// deep copies and removes a tree with paths longer than PATH_MAX.
func deep(t *testing.T, b *box) {
	host, dir := t.TempDir(), b.dir(t)
	half := strings.Repeat("/"+strings.Repeat("d", 240), 9)
	b.script(t, `mkdir -p "$1/a$2" "$1/b$2" && echo deep >"$1/b$2/f" && mv "$1/b" "$1/a$2/"`, dir,
		half)
	defer func() {
		require.NoError(t, b.Files().RemoveAll(context.Background(), dir+"/a"))
		same(t, "", b.list(t, dir))
	}()
	b.needScript(t, "the box's file system allows no tree as deep",
		`find "$1/a" >/dev/null 2>&1`, dir)
	require.NoError(t, b.copyFrom(t, dir+"/a", host+"/a"))
	root, err := os.OpenRoot(host)
	require.NoError(t, err)
	defer root.Close()
	got, err := root.ReadFile("a" + half + "/b" + half + "/f")
	require.NoError(t, err)
	same(t, "deep\n", string(got))
}

// linksOut copies links that try to make a later copy write outside the destination.
func linksOut(t *testing.T, b *box) {
	host, outside, dir := t.TempDir(), t.TempDir(), b.dir(t)
	b.script(t, `mkdir "$2/d" && ln -s "$1" "$2/d/l"`, outside, dir)
	require.NoError(t, os.Mkdir(host+"/dst", 0o755))
	require.NoError(t, b.copyFrom(t, dir+"/d", host+"/dst"))
	target, err := os.Readlink(host + "/dst/d/l")
	require.NoError(t, err)
	require.Equal(t, outside, target)
	// The link is replaced by a directory in the box, but is still a link in the first copy. The
	// second copy must not write through it.
	b.script(t, `cd "$1/d" && rm l && mkdir l && echo escaped > l/f`, dir)
	if err := b.copyFrom(t, dir+"/d", host+"/dst"); err != nil {
		t.Log("the second copy is refused:", err)
	}
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left, "files outside the destination")
	// a file replaces a link of its name, and is not written through it
	write(t, outside+"/victim", "untouched", 0o644)
	b.script(t, `mkdir "$2/e" && ln -s "$1" "$2/e/f"`, outside+"/victim", dir)
	require.NoError(t, b.copyFrom(t, dir+"/e", host+"/dst"))
	b.script(t, `cd "$1/e" && rm f && echo overwritten > f`, dir)
	b.copyFrom(t, dir+"/e", host+"/dst")
	hasContent(t, outside+"/victim", "untouched")
}
