//go:build linux

package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// snapshot returns what is below dir, one line each: path, mode, and content or target.
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

// build makes what the lines name: "d/" a directory, "l->t" a link, "f=content" a file.
func build(t testing.TB, dir string, lines ...string) string {
	t.Helper()
	for _, line := range lines {
		if name, target, ok := strings.Cut(line, "->"); ok {
			require.NoError(t, os.Symlink(strings.ReplaceAll(target, "DIR", dir), filepath.Join(dir, name)))
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
	require.NoError(t, Pack(&b, path))
	return b.Bytes()
}

// isFault checks an error as it is to be sent over a wire.
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
			t.Cleanup(func() { unlock(must(os.OpenRoot(dir)), ".") })
			long := strings.Repeat("long", 60)
			src := build(t, dir+"/src", "empty/", "a=A", "\xff\xfe=not UTF-8", "\xff/\xfe/f=x", long+"/"+long+"/f=deep", "new\nline=x", "-dash=x",
				"big="+strings.Repeat("0123456789", 50_000), "z=", "near->a", "out->../../x", "dangling->/no/such", "far->"+strings.Repeat("t", 300))
			require.NoError(t, os.Link(src+"/a", src+"/hard"))
			for name, mode := range map[string]fs.FileMode{"a": 0o640, "z": 0o777, "empty": 0o700, "\xff": 0o555, "\xff/\xfe/f": 0o400, ".": 0o751, "-dash": 0o600} {
				require.NoError(t, os.Chmod(filepath.Join(src, name), mode))
			}
			then := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
			for _, name := range []string{"big", "empty", "\xff"} {
				require.NoError(t, os.Chtimes(filepath.Join(src, name), then, then))
			}
			defer syscall.Umask(syscall.Umask(umask))
			for _, trusted := range []bool{false, true} {
				dst := fmt.Sprint(dir, "/dst", trusted)
				require.NoError(t, Unpack(bytes.NewReader(packed(t, src)), dst, Options{Trusted: trusted}))
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

// TestDestination: where a copy goes, and what is in its way.
func TestDestination(t *testing.T) {
	for _, c := range []struct {
		name  string
		there string // what there is, space-separated
		from  string
		to    string
		want  any // what is at that path then, or the error
	}{
		{"NewFile", "", "f", "g", "g=F"},
		{"NewFileSlash", "", "f", "g/", "g=F"},
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
			err := Unpack(bytes.NewReader(packed(t, filepath.Join(src, c.from))), to, Options{Trusted: true})
			if errno, ok := c.want.(syscall.Errno); ok {
				isFault(t, err, errno)
				if !strings.HasPrefix(c.name, "Merge") { // which goes file by file
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

// TestSource: what is packed for a path, and under which name.
func TestSource(t *testing.T) {
	dir := build(t, t.TempDir(), "f=F", "d/e/x=X", "l->f", "k->d/e")
	t.Chdir(dir + "/d")
	for _, c := range []struct{ path, first string }{
		{dir + "/f", "f"}, {dir + "/f/", "f"}, {dir + "/l", "l"}, {dir + "/d", "d/"}, {dir + "/d//", "d/"}, {dir + "/d/.", "d/"},
		{dir + "/d/e/..", "d/"}, {dir + "/k/..", "d/"}, {dir + "/k/../e", "e/"}, {dir + "/k", "k"}, {dir + "/k/.", "e/"},
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
	for path, want := range map[string]syscall.Errno{dir + "/no": syscall.ENOENT, "": syscall.ENOENT, dir + "/f/x": syscall.ENOTDIR, dir + "/no/.": syscall.ENOENT, "/dev/null": syscall.ENOTSUP} {
		isFault(t, Pack(io.Discard, path), want)
	}
	require.Equal(t, "/h", ExpandHome("~", "/h"))
	require.Equal(t, "/h/x", ExpandHome("~/x", "/h"))
	require.Equal(t, "~x", ExpandHome("~x", "/h"))
}

// TestNameless: the root of a file system has no name, but a copy of it may be given one.
func TestNameless(t *testing.T) {
	src, dst := build(t, t.TempDir(), "f=F", ".g=G"), t.TempDir()
	var b bytes.Buffer
	require.NoError(t, pack(&b, src, ".", ""))
	require.Error(t, Unpack(bytes.NewReader(b.Bytes()), dst, Options{}))
	require.Empty(t, snapshot(t, dst))
	require.NoError(t, Unpack(bytes.NewReader(b.Bytes()), dst+"/named", Options{}))
	require.Equal(t, snapshot(t, src), snapshot(t, dst+"/named"))
}

// TestSpecial: FIFOs, sockets and devices neither block nor fail a copy.
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
	require.NoError(t, Unpack(bytes.NewReader(archive), dir+"/trusted", Options{Trusted: true}))
	require.Equal(t, []string{`"f" ugrwxr-xr-x 1 "F"`, `"fifo" prw-rw-rw-`}, snapshot(t, dir+"/trusted"))
	info, err := os.Stat(dir + "/trusted")
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|fs.ModeSticky|0o775, info.Mode())
	require.NoError(t, Unpack(bytes.NewReader(archive), dir+"/other", Options{}))
	require.Equal(t, []string{`"f" -rwxr-xr-x 1 "F"`}, snapshot(t, dir+"/other"))

	archive = packed(t, dir+"/d/fifo")
	require.NoError(t, Unpack(bytes.NewReader(archive), dir+"/p", Options{Trusted: true}))
	isFault(t, Unpack(bytes.NewReader(archive), dir+"/q", Options{}), syscall.ENOTSUP)
	isFault(t, Unpack(bytes.NewReader(archive), dir+"/p/x", Options{}), syscall.ENOTDIR) // and is not opened
	noTemp(t, dir+"/other")
}

// TestTruncated: an archive that is cut anywhere leaves nothing.
func TestTruncated(t *testing.T) {
	src := build(t, t.TempDir(), "d/a=A", "d/e/", "d/b="+strings.Repeat("b", 1500), "d/l->a", "d/"+strings.Repeat("n", 200)+"=x", "d/z=Z")
	require.NoError(t, os.Link(src+"/d/a", src+"/d/y"))
	require.NoError(t, os.Chmod(src+"/d/e", 0o500))
	archive := packed(t, src+"/d")
	dir := build(t, t.TempDir(), "t/d/kept=K")
	before := snapshot(t, dir)
	for n := 0; n < len(archive); n += 256 {
		for _, to := range []string{"/new", "/t"} {
			err := Unpack(bytes.NewReader(archive[:n]), dir+to, Options{Trusted: true})
			isFault(t, err, io.ErrUnexpectedEOF)
			require.Equalf(t, before, snapshot(t, dir), "cut at %d of %d", n, len(archive))
		}
		broken := io.MultiReader(bytes.NewReader(archive[:n]), errorReader{syscall.ECONNRESET})
		isFault(t, Unpack(broken, dir+"/new", Options{}), syscall.ECONNRESET)
		require.Equal(t, before, snapshot(t, dir))
	}
	u, err := NewUnpacker(dir+"/new", Options{})
	require.NoError(t, err)
	require.Error(t, u.Commit(), "before it is whole")
	require.NoError(t, u.Close())
	require.NoError(t, Unpack(io.MultiReader(bytes.NewReader(archive), bytes.NewReader(make([]byte, 10240))), dir+"/new", Options{})) // padded
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// TestShorter: a source that fails halfway makes an archive without an end.
func TestShorter(t *testing.T) {
	dir := build(t, t.TempDir(), "d/a=A", "d/b="+strings.Repeat("b", 1<<20))
	var b bytes.Buffer
	err := Pack(writerFunc(func(p []byte) (int, error) {
		os.Truncate(dir+"/d/b", 512)
		return b.Write(p)
	}), dir+"/d")
	require.ErrorContains(t, err, "became shorter")
	isFault(t, err, err)
	isFault(t, Unpack(&b, dir+"/new", Options{}), io.ErrUnexpectedEOF)
	require.NoDirExists(t, dir+"/new")
	full := errors.New("full")
	require.ErrorIs(t, Pack(writerFunc(func([]byte) (int, error) { return 0, full }), dir+"/d"), full)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// An entry of an archive that is made by hand.
func dirEntry(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}
func fileEntry(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: 4}
}
func linkEntry(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}
func hardEntry(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

func handmade(headers ...*tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		w.Write([]byte("evil")[:h.Size])
	}
	w.Close()
	return b.Bytes()
}

// short is an archive of one file, most of whose content is not there.
func short(h *tar.Header) []byte {
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(h); err != nil {
		panic(err)
	}
	return append(b.Bytes(), make([]byte, 1024)...)
}

var malicious = []struct {
	name    string
	archive []byte
	works   bool
}{
	{"Up", handmade(fileEntry("../victim")), false},
	{"UpInside", handmade(dirEntry("x"), fileEntry("x/../../victim")), false},
	{"Absolute", handmade(fileEntry("/tmp/victim")), false},
	{"AbsoluteInside", handmade(dirEntry("x"), fileEntry("/x/victim")), false},
	{"Dots", handmade(dirEntry("..")), false},
	{"LinkThenFile", handmade(dirEntry("x"), linkEntry("x/l", "../.."), fileEntry("x/l/victim")), false},
	{"LinkAbsoluteThenFile", handmade(dirEntry("x"), linkEntry("x/l", "/tmp"), fileEntry("x/l/victim")), false},
	{"RootLinkThenFile", handmade(linkEntry("x", ".."), fileEntry("x/victim")), false},
	{"LinkThenDir", handmade(dirEntry("x"), linkEntry("x/l", "../../.."), dirEntry("x/l")), false},
	{"LinkThenDirBelow", handmade(dirEntry("x"), linkEntry("x/l", "../../.."), dirEntry("x/l/new")), false},
	{"LinkChain", handmade(dirEntry("x"), linkEntry("x/a", "b"), linkEntry("x/b", "../../.."), fileEntry("x/a/victim")), false},
	{"OverLink", handmade(dirEntry("x"), linkEntry("x/victim", "../../victim"), fileEntry("x/victim")), false},
	{"HardLinkUp", handmade(dirEntry("x"), hardEntry("x/h", "../../victim")), false},
	{"HardLinkAbsolute", handmade(dirEntry("x"), hardEntry("x/h", "/etc/passwd")), false},
	{"HardLinkThroughLink", handmade(dirEntry("x"), linkEntry("x/l", "../.."), hardEntry("x/h", "x/l/victim")), false},
	{"HardLinkOfLink", handmade(dirEntry("x"), linkEntry("x/l", "../../victim"), hardEntry("x/h", "x/l"), fileEntry("x/h")), false},
	{"TwoRoots", handmade(fileEntry("x"), fileEntry("y")), false},
	{"NoRoot", handmade(fileEntry("x/y")), false},
	{"Twice", handmade(dirEntry("x"), fileEntry("x/f"), fileEntry("x/f")), false},
	{"FileThenDir", handmade(dirEntry("x"), fileEntry("x/f"), dirEntry("x/f")), false},
	{"DirThenFile", handmade(dirEntry("x"), dirEntry("x/f"), fileEntry("x/f")), false},
	{"FileAsDir", handmade(dirEntry("x"), fileEntry("x/f"), fileEntry("x/f/g")), false},
	{"HugeName", handmade(dirEntry("x"), &tar.Header{Typeflag: tar.TypeReg, Name: "x/" + strings.Repeat("n", 5000), Format: tar.FormatGNU}), false},
	{"HugePath", handmade(dirEntry("x"), &tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("x/", 5000) + "f", Format: tar.FormatGNU}), false},
	{"HugeSize", short(&tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 1 << 60, Format: tar.FormatGNU}), false},
	{"Device", handmade(&tar.Header{Typeflag: tar.TypeChar, Name: "x"}), false},
	{"Empty", handmade(), false},
	{"Garbage", bytes.Repeat([]byte("garbage "), 1000), false},
	{"DirTwice", handmade(dirEntry("x"), dirEntry("x"), fileEntry("x/f")), true},
	{"DotSlash", handmade(dirEntry("./x"), fileEntry("./x/f")), true},
	{"DeviceInside", handmade(dirEntry("x"), &tar.Header{Typeflag: tar.TypeBlock, Name: "x/b"}), true},
}

func TestMalicious(t *testing.T) {
	for _, c := range malicious {
		for _, trusted := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, trusted), func(t *testing.T) {
				dir := build(t, t.TempDir(), "victim=V", "dst/victim=V", "dst/old=O")
				before := snapshot(t, dir)
				err := Unpack(bytes.NewReader(c.archive), dir+"/dst/new", Options{Trusted: trusted})
				if c.works {
					require.NoError(t, err)
					require.NoError(t, os.RemoveAll(dir+"/dst/new"))
				} else {
					var typed *fs.PathError
					require.ErrorAs(t, err, &typed)
				}
				require.Equal(t, before, snapshot(t, dir))
			})
		}
	}
}

// TestPlantedLink: a box's first copy leaves a link, through which its second would be written.
func TestPlantedLink(t *testing.T) {
	dir := build(t, t.TempDir(), "outside/", "dst/")
	require.NoError(t, Unpack(bytes.NewReader(handmade(linkEntry("x", dir+"/outside"))), dir+"/dst", Options{}))
	require.Error(t, Unpack(bytes.NewReader(handmade(dirEntry("x"), fileEntry("x/f"))), dir+"/dst", Options{}))
	require.NoError(t, Unpack(bytes.NewReader(handmade(fileEntry("x"))), dir+"/dst", Options{})) // in its place
	require.Equal(t, []string{`"dst" drwxr-xr-x`, `"dst/x" -rw-r--r-- 4 "evil"`, `"outside" drwxr-xr-x`}, snapshot(t, dir))
}

// FuzzUnpack: nothing is written but the copy. To be run with -fuzzminimizetime 10x: each run takes other ways through package os.
func FuzzUnpack(f *testing.F) {
	for _, c := range malicious {
		f.Add(c.archive)
	}
	f.Add(handmade(dirEntry("x"), fileEntry("x/f"), linkEntry("x/l", "f"), hardEntry("x/h", "x/f")))
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := build(t, t.TempDir(), "victim=V", "dst/")
		err := Unpack(bytes.NewReader(archive), dir+"/dst/new", Options{Trusted: len(archive)%2 == 1})
		if err != nil {
			var typed *fs.PathError
			if !errors.As(err, &typed) {
				t.Errorf("%T: %v", err, err)
			}
		}
		got := slices.DeleteFunc(names(t, dir), func(name string) bool { return err == nil && name == "dst/new" })
		if !slices.Equal(got, []string{"dst", "victim"}) {
			t.Fatalf("%v: %q", err, got)
		}
		if data, _ := os.ReadFile(dir + "/victim"); string(data) != "V" {
			t.Fatal("the victim is changed")
		}
		removeAll(must(os.OpenRoot(dir)), "dst")
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// names returns what is in dir and in its directory dst.
func names(t *testing.T, dir string) (all []string) {
	for _, at := range []string{"", "dst"} {
		entries, err := os.ReadDir(filepath.Join(dir, at))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, filepath.Join(at, e.Name()))
		}
	}
	slices.Sort(all)
	return all
}

func TestSparse(t *testing.T) {
	tool, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("this machine has no tar")
	}
	dir := build(t, t.TempDir(), "small=x")
	f, err := os.Create(dir + "/holes")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("middle"), 64<<20)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(100<<20+7))
	require.NoError(t, f.Close())
	for _, format := range []string{"gnu", "posix"} {
		archive, err := exec.Command(tool, "-S", "--format="+format, "-C", dir, "-cf", "-", "holes").Output()
		require.NoError(t, err)
		require.Less(t, len(archive), 1<<20)
		require.NoError(t, Unpack(bytes.NewReader(archive), dir+"/"+format, Options{}))
		require.NoError(t, exec.Command("cmp", dir+"/holes", dir+"/"+format).Run())
		var st unix.Stat_t
		require.NoError(t, unix.Stat(dir+"/"+format, &st))
		require.Less(t, st.Blocks*512, int64(1<<20))
	}
}

// TestTar: tar reads what PackForTar writes, and Unpack what tar writes.
func TestTar(t *testing.T) {
	tool, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("this machine has no tar")
	}
	dir := build(t, t.TempDir(), "d/a=A", "d/"+strings.Repeat("n", 200)+"=x", "d/l->a", "out/")
	var b bytes.Buffer
	require.NoError(t, PackForTar(&b, dir+"/d", "x", "end"))
	cmd := exec.Command(tool, "-C", dir+"/out", "-xpof", "-")
	cmd.Stdin = &b
	require.NoError(t, cmd.Run())
	require.FileExists(t, dir+"/out/end")
	require.Equal(t, snapshot(t, dir+"/d"), snapshot(t, dir+"/out/x"))
	archive, err := exec.Command(tool, "-C", dir, "-cf", "-", "./d").Output()
	require.NoError(t, err)
	require.NoError(t, Unpack(bytes.NewReader(archive), dir+"/back", Options{}))
	require.Equal(t, snapshot(t, dir+"/d"), snapshot(t, dir+"/back"))
}

// TestMounts: a disk that is full, and a file system within a directory that is added to.
func TestMounts(t *testing.T) {
	src := build(t, t.TempDir(), "d/a=A", "d/m/f=F", "d/m/s/g=G", "d/m/l->f", "d/big="+strings.Repeat("b", 1<<20))
	require.NoError(t, os.Chmod(src+"/d/m/s", 0o555))
	dir := build(t, t.TempDir(), "d/m/", "small/")
	for _, at := range []string{"/d/m", "/small"} {
		if err := unix.Mount("tmpfs", dir+at, "tmpfs", 0, "size=64k"); err != nil {
			t.Skip("may not mount:", err)
		}
		defer unix.Unmount(dir+at, unix.MNT_DETACH)
	}
	isFault(t, Unpack(bytes.NewReader(packed(t, src+"/d")), dir+"/small", Options{}), syscall.ENOSPC)
	require.Empty(t, snapshot(t, dir+"/small"))
	require.NoError(t, Unpack(bytes.NewReader(packed(t, src+"/d")), dir, Options{}))
	require.Equal(t, snapshot(t, src+"/d/m"), snapshot(t, dir+"/d/m"))
	require.FileExists(t, dir+"/d/big")
	require.NoError(t, Unpack(bytes.NewReader(packed(t, src+"/d/m/f")), dir+"/d/m", Options{})) // again
	require.NoError(t, unix.Mount("", dir+"/small", "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	isFault(t, Unpack(bytes.NewReader(packed(t, src+"/d")), dir+"/small", Options{}), syscall.EROFS)
}

// TestUnprivileged: what root may do all the same. Root runs it again as nobody.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() == 0 {
		dir, err := os.MkdirTemp("", "sandshell-unprivileged-") // not the test's: its parents are closed to others
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		require.NoError(t, os.Chmod(dir, 0o777))
		exe, err := os.ReadFile(must(os.Executable()))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(dir+"/test", exe, 0o755))
		cmd := exec.Command(dir+"/test", "-test.run=^(TestUnprivileged|TestRoundTrip|TestDestination|TestTruncated|TestMalicious)$", "-test.count=1")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	dir := build(t, t.TempDir(), "f=F", "d/sub/x=X", "secret/f=S", "locked/", "closed/f=C", "unreadable=U", "have/d/sub/y=Y", "file=old", "conflict/d/sub=file")
	modes := map[string]fs.FileMode{"locked": 0o555, "closed": 0, "unreadable": 0, "secret/f": 0, "d/sub": 0o555, "d": 0o555, "file": 0o444}
	for name, mode := range modes {
		require.NoError(t, os.Chmod(dir+"/"+name, mode))
	}
	defer unlock(must(os.OpenRoot(dir)), ".")
	for path, at := range map[string]string{"unreadable": "unreadable", "secret": "secret/f", "closed": "closed", "closed/f": "closed/f"} {
		err := Pack(io.Discard, dir+"/"+path)
		isFault(t, err, syscall.EACCES)
		require.ErrorContains(t, err, dir+"/"+at)
	}
	for _, to := range []string{"locked", "locked/new", "closed", "closed/new"} {
		isFault(t, Unpack(bytes.NewReader(packed(t, dir+"/f")), dir+"/"+to, Options{}), syscall.EACCES)
	}
	require.NoError(t, Unpack(bytes.NewReader(packed(t, dir+"/f")), dir+"/file", Options{})) // read-only, but not its directory
	tree := packed(t, dir+"/d")
	require.NoError(t, Unpack(bytes.NewReader(tree), dir+"/new", Options{})) // read-only directories, moved
	info, err := os.Stat(dir + "/new")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o555), info.Mode().Perm())
	require.Equal(t, snapshot(t, dir+"/d"), snapshot(t, dir+"/new"))
	require.NoError(t, Unpack(bytes.NewReader(tree), dir+"/have", Options{})) // and added
	require.FileExists(t, dir+"/have/d/sub/x")
	require.FileExists(t, dir+"/have/d/sub/y")
	isFault(t, Unpack(bytes.NewReader(tree), dir+"/conflict", Options{}), syscall.ENOTDIR) // and removed
	require.Equal(t, []string{`"d" drwxr-xr-x`, `"d/sub" -rw-r--r-- 4 "file"`}, snapshot(t, dir+"/conflict"))
}
