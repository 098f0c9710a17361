//go:build linux

package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// snapshot returns a line for each file below dir: its path, mode, and content or target.
func snapshot(t testing.TB, dir string) []string {
	t.Helper()
	lines := []string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		line := fmt.Sprintf("%q %v", rel, info.Mode())
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d %.50q", len(data), data)
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			line += " -> " + target
		}
		lines = append(lines, line)
		return nil
	}))
	return lines
}

// build makes a file for each line: "d/" a directory, "l->t" a link, "f=content" a regular file.
func build(t testing.TB, dir string, lines ...string) string {
	t.Helper()
	for _, line := range lines {
		if name, target, ok := strings.Cut(line, "->"); ok {
			require.NoError(t, os.Symlink(strings.ReplaceAll(target, "DIR", dir),
				filepath.Join(dir, name)))
		} else if name, content, ok := strings.Cut(line, "="); ok {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
		} else {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, line), 0o755))
		}
	}
	return dir
}

func packed(t testing.TB, path string) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Pack(t.Context(), &b, path))
	return b.Bytes()
}

// isFault checks that an error is want and has a type that can be sent over a connection.
func isFault(t testing.TB, err, want error) {
	t.Helper()
	var typed *fs.PathError
	require.ErrorAs(t, err, &typed)
	require.ErrorIs(t, err, want)
	if _, ok := want.(syscall.Errno); ok {
		require.Equal(t, want, typed.Err, "%v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, umask := range []int{0o022, 0o077, 0} {
		t.Run(fmt.Sprintf("%03o", umask), func(t *testing.T) {
			dir := t.TempDir()
			t.Cleanup(func() { makeWritable(must(os.OpenRoot(dir)), ".") })
			long := strings.Repeat("long", 60)
			src := build(t, dir+"/src", "empty/", "a=A", "\xff\xfe=not UTF-8", "\xff/\xfe/f=x",
				long+"/"+long+"/f=deep", "new\nline=x", "-dash=x",
				"big="+strings.Repeat("0123456789", 50_000), "z=", "near->a", "out->../../x",
				"dangling->/no/such", "far->"+strings.Repeat("t", 300))
			require.NoError(t, os.Link(src+"/a", src+"/hard"))
			for name, mode := range map[string]fs.FileMode{"a": 0o640, "z": 0o777, "empty": 0o700,
				"\xff": 0o555, "\xff/\xfe/f": 0o400, ".": 0o751, "-dash": 0o600} {
				require.NoError(t, os.Chmod(filepath.Join(src, name), mode))
			}
			then := time.Date(2001, 2, 3, 4, 5, 6, 789_012_345, time.UTC)
			for _, name := range []string{"big", "empty", "\xff"} {
				require.NoError(t, os.Chtimes(filepath.Join(src, name), then, then))
			}
			defer syscall.Umask(syscall.Umask(umask))
			for _, trusted := range []bool{false, true} {
				dst := fmt.Sprint(dir, "/dst", trusted)
				require.NoError(t, Unpack(t.Context(), bytes.NewReader(packed(t, src)), dst,
					Options{Trusted: trusted}))
				require.Equal(t, snapshot(t, src), snapshot(t, dst))
				for _, name := range []string{"big", "empty", "\xff"} {
					info, err := os.Stat(filepath.Join(dst, name))
					require.NoError(t, err)
					require.Equal(t, then, info.ModTime().UTC(), "%q", name)
				}
				one, err := os.Stat(dst + "/a")
				require.NoError(t, err)
				other, err := os.Stat(dst + "/hard")
				require.NoError(t, err)
				require.True(t, os.SameFile(one, other))
				root, err := os.Stat(dst)
				require.NoError(t, err)
				require.Equal(t, fs.FileMode(0o751), root.Mode().Perm())
			}
		})
	}
}

// TestDestination tests where a copy goes, and what may exist there.
func TestDestination(t *testing.T) {
	for _, c := range []struct {
		name  string
		there string // what exists before, space-separated
		from  string
		to    string
		want  any // a file that exists afterwards, with its content, or the error
	}{
		{"NewFile", "", "f", "g", "g=F"},
		{"NewFileSlash", "", "f", "g/", syscall.ENOTDIR},
		{"OntoFileSlash", "g=G", "f", "g/", syscall.ENOTDIR},
		{"NewDirSlash", "", "d", "e/", "e/x=X"},
		{"LinkToDirSlash", "t/ l->t", "f", "l/", "t/f=F"},
		{"LinkToFileSlash", "g=G l->g", "f", "l/", syscall.ENOTDIR},
		{"NewDir", "", "d", "e", "e/x=X"},
		{"IntoDir", "t/", "f", "t", "t/f=F"},
		{"IntoDirSlashes", "t/", "f", "t//", "t/f=F"},
		{"IntoDirDot", "t/", "f", "t/.", "t/f=F"},
		{"DirIntoDir", "t/", "d", "t", "t/d/x=X"},
		{"ThroughLinkAndUp", "t/u/ l->t/u", "f", "l/../g", "t/g=F"},
		{"LinkToDir", "t/ l->t", "f", "l", "t/f=F"},
		{"OntoFile", "g=longer", "f", "g", "g=F"},
		{"OntoLink", "g=G l->g", "f", "l", "l=F"},
		{"LinkedFileStays", "g=G l->g", "f", "l", "g=G"},
		{"OntoDanglingLink", "l->no", "f", "l", "l=F"},
		{"Merge", "t/d/y=Y", "d", "t", "t/d/x=X"},
		{"MergeKeeps", "t/d/y=Y", "d", "t", "t/d/y=Y"},
		{"MergeReplaces", "t/d/x=old", "d", "t", "t/d/x=X"},
		{"MergeDeep", "t/d/s/y=Y", "d", "t", "t/d/s/y=Y"},
		{"MergeThroughLink", "o/ t/ t/d->DIR/o", "d", "t", "o/x=X"},
		{"MissingParent", "", "f", "no/g", syscall.ENOENT},
		{"MissingDirDot", "", "f", "no/.", syscall.ENOENT},
		{"Empty", "", "f", "", syscall.ENOENT},
		{"ParentIsFile", "g=G", "f", "g/h", syscall.ENOTDIR},
		{"FileOntoDir", "t/f/", "f", "t", syscall.EISDIR},
		{"FileOntoLinkToDir", "o/ t/ t/f->DIR/o", "f", "t", syscall.EISDIR},
		{"DirOntoFile", "g=G", "d", "g", syscall.ENOTDIR},
		{"DirOntoDangling", "l->no", "d", "l", syscall.ENOTDIR},
		{"DirOntoFileInDir", "t/d=D", "d", "t", syscall.ENOTDIR},
		{"MergeDirOntoFile", "t/d/s=S", "d", "t", syscall.ENOTDIR},
		{"MergeDirOntoLinkOut", "t/d/ o/ t/d/s->DIR/o", "d", "t", syscall.ENOTDIR},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := build(t, t.TempDir(), "f=F", "d/x=X", "d/s/z=Z")
			dir := build(t, t.TempDir(), strings.Fields(c.there)...)
			to := c.to
			if to != "" {
				to = dir + "/" + to
			}
			before := snapshot(t, dir)
			err := Unpack(t.Context(), bytes.NewReader(packed(t, filepath.Join(src, c.from))), to,
				Options{Trusted: true})
			if errno, ok := c.want.(syscall.Errno); ok {
				isFault(t, err, errno)
				if !strings.HasPrefix(c.name, "Merge") { // a merge may be done in part
					require.Equal(t, before, snapshot(t, dir))
				}
			} else {
				require.NoError(t, err)
				name, content, _ := strings.Cut(c.want.(string), "=")
				info, err := os.Lstat(filepath.Join(dir, name))
				require.NoError(t, err)
				require.True(t, info.Mode().IsRegular())
				data, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				require.Equal(t, content, string(data))
			}
			noTemp(t, dir)
		})
	}
}

func noTemp(t testing.TB, dir string) {
	t.Helper()
	for _, line := range snapshot(t, dir) {
		require.NotContains(t, line, tempPrefix)
	}
}

// TestSource tests what is packed for a path, and under which name.
func TestSource(t *testing.T) {
	dir := build(t, t.TempDir(), "f=F", "d/e/x=X", "l->f", "k->d/e")
	t.Chdir(dir + "/d")
	for _, c := range []struct{ path, first string }{
		{dir + "/f", "f"}, {dir + "/l", "l"}, {dir + "/d", "d/"}, {dir + "/d//", "d/"},
		{dir + "/d/.", "d/"},
		{dir + "/d/e/..", "d/"}, {dir + "/k/..", "d/"}, {dir + "/k/../e", "e/"}, {dir + "/k", "k"},
		{dir + "/k/.", "e/"}, {dir + "/k/", "k/"},
		{".", "d/"}, {"e", "e/"}, {"../f", "f"}, {"e/..", "d/"},
	} {
		h, err := tar.NewReader(bytes.NewReader(packed(t, c.path))).Next()
		require.NoError(t, err)
		require.Equal(t, c.first, h.Name, c.path)
		require.Zero(t, h.Uid)
		require.Empty(t, h.Uname)
	}
	name, err := Name("/")
	require.NoError(t, err)
	require.Equal(t, ".", name)
	for path, want := range map[string]syscall.Errno{dir + "/no": syscall.ENOENT,
		"": syscall.ENOENT, dir + "/f/x": syscall.ENOTDIR, dir + "/f/": syscall.ENOTDIR,
		dir + "/l/": syscall.ENOTDIR, dir + "/no/.": syscall.ENOENT, "/dev/null": syscall.ENOTSUP} {
		isFault(t, Pack(t.Context(), io.Discard, path), want)
	}
	require.Equal(t, "/h", ExpandHome("~", "/h"))
	require.Equal(t, "/h/x", ExpandHome("~/x", "/h"))
	require.Equal(t, "~x", ExpandHome("~x", "/h"))
}

// The root of a file system has no name. A copy of it must get one.
func TestNameless(t *testing.T) {
	src, dst := build(t, t.TempDir(), "f=F", ".g=G"), t.TempDir()
	var b bytes.Buffer
	require.NoError(t, newPacker(&b).packAll(t.Context(), src, ".", ""))
	require.Error(t, Unpack(t.Context(), bytes.NewReader(b.Bytes()), dst, Options{}))
	require.Empty(t, snapshot(t, dst))
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(b.Bytes()), dst+"/named", Options{}))
	require.Equal(t, snapshot(t, src), snapshot(t, dst+"/named"))
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(b.Bytes()), dst, Options{Name: "link"}))
	require.Equal(t, snapshot(t, src), snapshot(t, dst+"/link"))
}

// FIFOs, sockets and devices neither block a copy nor make it fail.
func TestSpecial(t *testing.T) {
	dir := build(t, t.TempDir(), "d/f=F", "d/"+tempPrefix+"X/f=not copied")
	require.NoError(t, unix.Mkfifo(dir+"/d/fifo", 0o666))
	require.NoError(t, os.Chmod(dir+"/d/fifo", 0o666))
	require.NoError(t, os.Chmod(dir+"/d/f", 0o755|fs.ModeSetuid|fs.ModeSetgid))
	require.NoError(t, os.Chmod(dir+"/d", 0o775|fs.ModeSticky))
	l, err := net.Listen("unix", dir+"/d/socket")
	require.NoError(t, err)
	defer l.Close()
	if err := unix.Mknod(dir+"/d/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Log("without a device:", err)
	}
	archive := packed(t, dir+"/d")
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(archive), dir+"/trusted",
		Options{Trusted: true}))
	require.Equal(t, []string{`"f" ugrwxr-xr-x 1 "F"`, `"fifo" prw-rw-rw-`},
		snapshot(t, dir+"/trusted"))
	info, err := os.Stat(dir + "/trusted")
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|fs.ModeSticky|0o775, info.Mode())
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(archive), dir+"/other", Options{}))
	require.Equal(t, []string{`"f" -rwxr-xr-x 1 "F"`}, snapshot(t, dir+"/other"))

	archive = packed(t, dir+"/d/fifo")
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(archive), dir+"/p",
		Options{Trusted: true}))
	isFault(t, Unpack(t.Context(), bytes.NewReader(archive), dir+"/q", Options{}), syscall.ENOTSUP)
	// The FIFO is not opened.
	isFault(t, Unpack(t.Context(), bytes.NewReader(archive), dir+"/p/x", Options{}),
		syscall.ENOTDIR)
	file := packed(t, dir+"/d/f")
	for _, to := range []string{"/p", "/d/fifo", "/d/socket"} { // these are not replaced
		isFault(t, Unpack(t.Context(), bytes.NewReader(file), dir+to, Options{Trusted: true}),
			fs.ErrInvalid)
	}
	build(t, dir, "m/d/fifo=not for a FIFO")
	isFault(t, Unpack(t.Context(), bytes.NewReader(packed(t, dir+"/m/d")), dir,
		Options{Trusted: true}), fs.ErrInvalid)
	info, err = os.Lstat(dir + "/d/fifo")
	require.NoError(t, err)
	require.Equal(t, fs.ModeNamedPipe, info.Mode().Type())
	noTemp(t, dir+"/other")
}

// An archive that is cut off anywhere leaves nothing.
func TestTruncated(t *testing.T) {
	src := build(t, t.TempDir(), "d/a=A", "d/e/", "d/b="+strings.Repeat("b", 1500), "d/l->a",
		"d/"+strings.Repeat("n", 200)+"=x", "d/z=Z")
	require.NoError(t, os.Link(src+"/d/a", src+"/d/y"))
	require.NoError(t, os.Chmod(src+"/d/e", 0o500))
	archive := packed(t, src+"/d")
	dir := build(t, t.TempDir(), "t/d/kept=K")
	before := snapshot(t, dir)
	for n := 0; n < len(archive); n += 256 {
		for _, to := range []string{"/new", "/t"} {
			err := Unpack(t.Context(), bytes.NewReader(archive[:n]), dir+to, Options{Trusted: true})
			isFault(t, err, io.ErrUnexpectedEOF)
			require.Equalf(t, before, snapshot(t, dir), "cut at %d of %d", n, len(archive))
		}
		broken := io.MultiReader(bytes.NewReader(archive[:n]), errorReader{syscall.ECONNRESET})
		isFault(t, Unpack(t.Context(), broken, dir+"/new", Options{}), syscall.ECONNRESET)
		require.Equal(t, before, snapshot(t, dir))
	}
	u, err := NewUnpacker(dir+"/new", Options{})
	require.NoError(t, err)
	require.Error(t, u.Commit(), "before the archive has been read")
	require.NoError(t, u.Close())
	// padding after the trailer
	require.NoError(t, Unpack(t.Context(), io.MultiReader(bytes.NewReader(archive),
		bytes.NewReader(make([]byte, 10240))), dir+"/new", Options{}))
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }
