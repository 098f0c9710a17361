package sandboxtest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// files copies files into the box and out of it, and uses single files there.
func (s *suite) files(t *testing.T) {
	b := s.box(t)
	b.sections(t, []section{
		{"40_Content", contents},
		{"40_Names", names},
		{"40_Tree", tree},
		{"41_Attributes", attributes},
		{"41_OntoWhatIsThere", onto},
		{"42_BoxPath", boxPaths},
		{"43_Errors", copyErrors},
		{"44_LinksOut", linksOut},
		{"45_Odd", odd},
		{"45_Deep", deep},
	})
	smallFiles(t, b)
}

// copyTo calls CopyTo.
func (b *box) copyTo(t testing.TB, hostPath, boxPath string) error {
	t.Helper()
	_, err := within(b, t, "CopyTo", noResult(func(ctx context.Context) error {
		return b.CopyTo(ctx, hostPath, boxPath)
	}))
	return err
}

// copyFrom calls CopyFrom.
func (b *box) copyFrom(t testing.TB, boxPath, hostPath string) error {
	t.Helper()
	_, err := within(b, t, "CopyFrom", noResult(func(ctx context.Context) error {
		return b.CopyFrom(ctx, boxPath, hostPath)
	}))
	return err
}

// dir makes a directory in the box.
func (b *box) dir(t testing.TB) string {
	t.Helper()
	return strings.TrimSuffix(b.script(t, `d=$(mktemp -d "$1/XXXXXX") && printf '%s\n' "$d"`,
		b.tmp), "\n")
}

// write makes a file on this machine.
func write(t testing.TB, path, content string, mode fs.FileMode) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

// hasContent checks a file on this machine.
func hasContent(t testing.TB, path, content string) {
	t.Helper()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	same(t, content, string(got))
}

// contents copies files with various contents.
func contents(t *testing.T, b *box) {
	for _, c := range []struct{ name, content string }{
		{"Text", "one\ntwo\n"}, {"Empty", ""}, {"Binary", strings.Repeat(allBytes, 10)},
		{"512Bytes", strings.Repeat("x", 512)}, {"Large", lines(1, 500_000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, host := b.dir(t), t.TempDir()
			require.NoError(t, b.copyTo(t, write(t, host+"/f", c.content, 0o644), dir+"/g"))
			same(t, c.content, b.cat(t, dir+"/g"))
			require.NoError(t, b.copyFrom(t, dir+"/g", host+"/h"))
			hasContent(t, host+"/h", c.content)
			same(t, "g\n", b.list(t, dir)) // no temporary file is left
		})
	}
}

// names copies files with odd names.
func names(t *testing.T, b *box) {
	odd := []string{"a b", " lead", "trail ", "it's", `dq"`, "new\nline", "-dash", "$HOME", "`x`",
		"*", "?", `back\slash`, "日本 é", ".hidden", "...", "semi;", "#", "tab\t", "esc\x1b[31m",
		strings.Repeat("long", 60)}
	if runtime.GOOS == "linux" {
		odd = append(odd, "\xff\xfe")
	}
	host, dir := t.TempDir(), b.dir(t)
	for _, name := range odd {
		write(t, filepath.Join(host, "in", name), name, 0o644)
		require.NoErrorf(t, b.copyTo(t, filepath.Join(host, "in", name), dir+"/"+name), "%q", name)
		same(t, name, b.cat(t, dir+"/"+name))
		require.NoErrorf(t, b.copyFrom(t, dir+"/"+name, filepath.Join(host, "out")), "%q", name)
		hasContent(t, filepath.Join(host, "out"), name)
	}
	require.NoError(t, b.copyTo(t, filepath.Join(host, "in"), dir+"/all"))
	require.NoError(t, b.copyFrom(t, dir+"/all", filepath.Join(host, "all")))
	for _, name := range odd {
		hasContent(t, filepath.Join(host, "all", name), name)
	}
}

// tree copies directories.
func tree(t *testing.T, b *box) {
	host, dir := t.TempDir(), b.dir(t)
	write(t, host+"/src/a", "a", 0o644)
	write(t, host+"/src/sub/deep/er/b", "b", 0o644)
	write(t, host+"/src/.config/c", "c", 0o644)
	require.NoError(t, os.MkdirAll(host+"/src/empty/nested", 0o755))
	require.NoError(t, b.copyTo(t, host+"/src", dir+"/dst"))
	const list = `cd "$1" && find . | LC_ALL=C sort`
	want := ".\n./.config\n./.config/c\n./a\n./empty\n./empty/nested\n" +
		"./sub\n./sub/deep\n./sub/deep/er\n./sub/deep/er/b\n"
	same(t, want, b.script(t, list, dir+"/dst"))
	require.NoError(t, b.copyFrom(t, dir+"/dst", host+"/back"))
	var got []string
	require.NoError(t, filepath.WalkDir(host+"/back",
		func(path string, _ fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(host+"/back", path)
			got = append(got, rel)
			return err
		}))
	require.Equal(t, []string{".", ".config", ".config/c", "a", "empty", "empty/nested", "sub",
		"sub/deep", "sub/deep/er", "sub/deep/er/b"}, got)
	hasContent(t, host+"/back/sub/deep/er/b", "b")
	require.NoError(t, b.copyTo(t, host+"/src", dir+"/")) // into the existing directory
	same(t, want, b.script(t, list, dir+"/src"))
	require.NoError(t, os.MkdirAll(host+"/none", 0o755))
	require.NoError(t, b.copyTo(t, host+"/none", dir+"/none"))
	same(t, ".\n", b.script(t, list, dir+"/none"))
	require.NoError(t, b.copyFrom(t, dir+"/none", host+"/none2"))
	require.DirExists(t, host+"/none2")
}

// attributes checks permissions, times and links of copies.
func attributes(t *testing.T, b *box) {
	t.Run("Permissions", func(t *testing.T) {
		host, dir := t.TempDir(), b.dir(t)
		for mode, want := range map[fs.FileMode]string{0o755: "-rwxr-xr-x", 0o640: "-rw-r-----",
			0o444: "-r--r--r--", 0o600: "-rw-------"} {
			name := "/f" + mode.String()
			require.NoError(t, b.copyTo(t, write(t, host+name, "#!/bin/sh\necho ran\n", mode),
				dir+name))
			same(t, want+"\n", b.script(t, `ls -ld "$1" | cut -c 1-10`, dir+name))
			require.NoError(t, b.copyFrom(t, dir+name, host+name+".back"))
			info, err := os.Stat(host + name + ".back")
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode())
		}
		same(t, "ran\n", b.script(t, `"$1"`, dir+"/f"+fs.FileMode(0o755).String()))
	})
	t.Run("Directory", func(t *testing.T) {
		host, dir := t.TempDir(), b.dir(t)
		write(t, host+"/d/f", "x", 0o600)
		require.NoError(t, os.Chmod(host+"/d", 0o750))
		require.NoError(t, b.copyTo(t, host+"/d", dir+"/d"))
		same(t, "drwxr-x---\n", b.script(t, `ls -ld "$1" | cut -c 1-10`, dir+"/d"))
	})
	t.Run("Times", func(t *testing.T) {
		host, dir := t.TempDir(), b.dir(t)
		then := time.Date(2001, 2, 3, 4, 5, 6, 789_012_300, time.UTC)
		write(t, host+"/f", "x", 0o644)
		require.NoError(t, os.Chtimes(host+"/f", then, then))
		require.NoError(t, b.copyTo(t, host+"/f", dir+"/f"))
		require.NoError(t, b.copyFrom(t, dir+"/f", host+"/g"))
		info, err := os.Stat(host + "/g")
		require.NoError(t, err)
		require.Equal(t, then, info.ModTime().UTC())
	})
	// Links are copied as links.
	t.Run("Links", func(t *testing.T) {
		host, dir := t.TempDir(), b.dir(t)
		write(t, host+"/d/f", "x", 0o644)
		links := map[string]string{"near": "f", "up": "../../nothing", "absolute": "/etc/hosts",
			"dangling": "no such", "odd": "it's a\nname"}
		for name, target := range links {
			require.NoError(t, os.Symlink(target, filepath.Join(host, "d", name)))
		}
		require.NoError(t, b.copyTo(t, host+"/d", dir+"/d"))
		same(t, "/etc/hosts\n", b.script(t, `readlink "$1"`, dir+"/d/absolute"))
		require.NoError(t, b.copyFrom(t, dir+"/d", host+"/back"))
		for name, target := range links {
			got, err := os.Readlink(filepath.Join(host, "back", name))
			require.NoError(t, err)
			require.Equal(t, target, got)
		}
		hasContent(t, host+"/back/near", "x")
	})
}

// onto copies onto what exists.
func onto(t *testing.T, b *box) {
	host, dir := t.TempDir(), b.dir(t)
	write(t, host+"/new", "new", 0o644)
	t.Run("File", func(t *testing.T) {
		b.script(t, `printf 'old and longer' > "$1"`, dir+"/f")
		require.NoError(t, b.copyTo(t, host+"/new", dir+"/f"))
		same(t, "new", b.cat(t, dir+"/f"))
		write(t, host+"/old", "old and longer", 0o644)
		require.NoError(t, b.copyFrom(t, dir+"/f", host+"/old"))
		hasContent(t, host+"/old", "new")
	})
	t.Run("Directory", func(t *testing.T) {
		b.script(t, `mkdir "$1"`, dir+"/d")
		require.NoError(t, b.copyTo(t, host+"/new", dir+"/d"))
		same(t, "new", b.cat(t, dir+"/d/new"))
		require.NoError(t, os.Mkdir(host+"/d", 0o755))
		require.NoError(t, b.copyFrom(t, dir+"/d/new", host+"/d"))
		hasContent(t, host+"/d/new", "new")
	})
	// The files go into the directory, beside its own.
	t.Run("DirectoryOntoDirectory", func(t *testing.T) {
		write(t, host+"/tree/x", "x", 0o644)
		b.script(t, `mkdir -p "$1/tree" && printf y > "$1/tree/y"`, dir+"/d")
		require.NoError(t, b.copyTo(t, host+"/tree", dir+"/d"))
		same(t, "x\ny\n", b.script(t, `ls "$1"`, dir+"/d/tree"))
	})
	t.Run("DirectoryOntoFile", func(t *testing.T) {
		b.script(t, `printf kept > "$1"`, dir+"/file")
		require.ErrorIs(t, b.copyTo(t, host+"/tree", dir+"/file"), syscall.ENOTDIR)
		same(t, "kept", b.cat(t, dir+"/file"))
		require.ErrorIs(t, b.copyFrom(t, dir+"/d/tree", host+"/new"), syscall.ENOTDIR)
		hasContent(t, host+"/new", "new")
	})
	t.Run("FileOntoDirectoryOfItsName", func(t *testing.T) {
		b.script(t, `mkdir -p "$1/into/new/kept"`, dir)
		require.ErrorIs(t, b.copyTo(t, host+"/new", dir+"/into"), syscall.EISDIR)
		same(t, "kept\n", b.script(t, `ls -A "$1/into/new"`, dir))
		require.NoError(t, os.MkdirAll(host+"/into/new/kept", 0o755))
		require.ErrorIs(t, b.copyFrom(t, dir+"/d/new", host+"/into"), syscall.EISDIR)
		require.DirExists(t, host+"/into/new/kept")
	})
	// The file is replaced, for which write permission of the directory is enough.
	t.Run("ReadOnlyFile", func(t *testing.T) {
		b.script(t, `printf old > "$1/ro" && chmod 444 "$1/ro"`, dir)
		require.NoError(t, b.copyTo(t, host+"/new", dir+"/ro"))
		same(t, "new-rw-r--r--\n", b.script(t, `cat "$1" && ls -l "$1" | cut -c1-10`, dir+"/ro"))
		write(t, host+"/ro", "old", 0o444)
		require.NoError(t, b.copyFrom(t, dir+"/ro", host+"/ro"))
		hasContent(t, host+"/ro", "new")
	})
}

// boxPaths uses paths in the box: relative ones, ~ and links.
func boxPaths(t *testing.T, b *box) {
	host, dir := t.TempDir(), b.dir(t)
	write(t, host+"/f", "content", 0o644)
	main := b.main(t)
	// The path is relative to the current directory of the main session.
	t.Run("Relative", func(t *testing.T) {
		main := main.with(t)
		main.output("cd " + quote(dir) + " && mkdir sub")
		require.NoError(t, b.copyTo(t, host+"/f", "rel"))
		require.NoError(t, b.copyTo(t, host+"/f", "sub"))
		require.NoError(t, b.copyTo(t, host+"/f", "./sub/g"))
		same(t, "contentcontentcontent", main.output("cat rel sub/f sub/g"))
		main.output("cd sub")
		require.NoError(t, b.copyTo(t, host+"/f", "../up"))
		require.NoError(t, b.copyTo(t, host+"/f", "."))
		require.NoError(t, b.copyFrom(t, "../up", host+"/up"))
		hasContent(t, host+"/up", "content")
		same(t, "content", b.cat(t, dir+"/up"))
		defer main.output("cd " + quote(b.home))
		relativeFiles(t, b, dir)
	})
	t.Run("Tilde", func(t *testing.T) {
		b.needScript(t, "the user may not write to the home directory", "[ -w ~ ]")
		name := filepath.Base(dir) + ".tilde"
		require.NoError(t, b.copyTo(t, host+"/f", "~/"+name))
		t.Cleanup(func() { b.sh(t, `rm -f ~/"$1"`, name) })
		same(t, "content", b.script(t, `cat ~/"$1"`, name))
		require.NoError(t, b.copyFrom(t, "~/"+name, host+"/tilde"))
		hasContent(t, host+"/tilde", "content")
	})
	// Elsewhere ~ is a name like any other.
	t.Run("TildeInside", func(t *testing.T) {
		require.NoError(t, b.copyTo(t, host+"/f", dir+"/~"))
		same(t, "content", b.script(t, `cat "$1"/'~'`, dir))
	})
	t.Run("LinkToADirectory", func(t *testing.T) {
		b.script(t, `mkdir "$1/real" && ln -s real "$1/link"`, dir)
		require.NoError(t, b.copyTo(t, host+"/f", dir+"/link"))
		same(t, "content", b.script(t, `cat "$1/real/f"`, dir))
	})
	t.Run("MissingParent", func(t *testing.T) {
		require.ErrorIs(t, b.copyTo(t, host+"/f", dir+"/no/such/f"), fs.ErrNotExist)
		require.ErrorIs(t, b.copyFrom(t, dir+"/~", host+"/no/such/f"), fs.ErrNotExist)
		require.NoDirExists(t, host+"/no")
	})
	t.Run("WhileTheSessionIsBusy", func(t *testing.T) {
		main := main.with(t)
		waiting(t, main.exec(ask), sandbox.Line)
		require.NoError(t, b.copyTo(t, host+"/f", dir+"/busy"))
		exited(t, main.input("ann\n"), 0)
		same(t, "content", b.cat(t, dir+"/busy"))
	})
}
