//go:build linux

package archive

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

func TestSparse(t *testing.T) {
	tool, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("this machine has no tar: install it")
	}
	dir := build(t, t.TempDir(), "small=x")
	f, err := os.Create(dir + "/holes")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("middle"), 64<<20)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(100<<20+7))
	require.NoError(t, f.Close())
	for _, format := range []string{"gnu", "posix"} {
		archive, err := exec.Command(tool, "-S", "--format="+format, "-C", dir, "-cf", "-",
			"holes").Output()
		require.NoError(t, err)
		require.Less(t, len(archive), 1<<20)
		require.NoError(t, Unpack(t.Context(), bytes.NewReader(archive), dir+"/"+format, Options{}))
		require.NoError(t, exec.Command("cmp", dir+"/holes", dir+"/"+format).Run())
		var st unix.Stat_t
		require.NoError(t, unix.Stat(dir+"/"+format, &st))
		require.Less(t, st.Blocks*512, int64(1<<20))
	}
}

// An archive of 10 KiB may stand for a terabyte of zeros. Unpack ends when ctx ends.
func TestSparseCancelled(t *testing.T) {
	tool, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("this machine has no tar: install it")
	}
	dir := build(t, t.TempDir(), "to/")
	f, err := os.Create(dir + "/holes")
	require.NoError(t, err)
	if err := f.Truncate(1 << 40); err != nil {
		t.Skip("the file system has no file so large:", err)
	}
	require.NoError(t, f.Close())
	archive, err := exec.Command(tool, "-S", "-C", dir, "-cf", "-", "holes").Output()
	require.NoError(t, err)
	require.Less(t, len(archive), 1<<20)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	require.ErrorIs(t, Unpack(ctx, bytes.NewReader(archive), dir+"/to", Options{}),
		context.DeadlineExceeded)
	require.Less(t, time.Since(begin), testenv.Limit)
	left, err := os.ReadDir(dir + "/to")
	require.NoError(t, err)
	require.Empty(t, left)
}

// tar reads what PackForTar writes, and Unpack reads what tar writes.
func TestTar(t *testing.T) {
	tool, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("this machine has no tar: install it")
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
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(archive), dir+"/back", Options{}))
	require.Equal(t, snapshot(t, dir+"/d"), snapshot(t, dir+"/back"))
}

// TestMounts copies to a full disk, and into a directory in which a file system is mounted.
func TestMounts(t *testing.T) {
	src := build(t, t.TempDir(), "d/a=A", "d/m/f=F", "d/m/s/g=G", "d/m/l->f",
		"d/big="+strings.Repeat("b", 1<<20))
	require.NoError(t, os.Chmod(src+"/d/m/s", 0o555))
	dir := build(t, t.TempDir(), "d/m/", "small/")
	for _, at := range []string{"/d/m", "/small"} {
		if err := unix.Mount("tmpfs", dir+at, "tmpfs", 0, "size=64k"); err != nil {
			t.Skip("only root with CAP_SYS_ADMIN may mount, so run it as that:", err)
		}
		defer unix.Unmount(dir+at, unix.MNT_DETACH)
	}
	isFault(t, Unpack(t.Context(), bytes.NewReader(packed(t, src+"/d")), dir+"/small", Options{}),
		syscall.ENOSPC)
	require.Empty(t, snapshot(t, dir+"/small"))
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(packed(t, src+"/d")), dir, Options{}))
	require.Equal(t, snapshot(t, src+"/d/m"), snapshot(t, dir+"/d/m"))
	require.FileExists(t, dir+"/d/big")
	// f exists there already.
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(packed(t, src+"/d/m/f")), dir+"/d/m",
		Options{}))
	require.NoError(t, unix.Mount("", dir+"/small", "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	isFault(t, Unpack(t.Context(), bytes.NewReader(packed(t, src+"/d")), dir+"/small", Options{}),
		syscall.EROFS)
}

// TestUnprivileged tests permissions, which do not apply to root. root runs the test as nobody.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() == 0 {
		// t.TempDir would not do: other users cannot enter its parents.
		dir, err := os.MkdirTemp("", "sandshell-unprivileged-")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		require.NoError(t, os.Chmod(dir, 0o777))
		exe, err := os.ReadFile(must(os.Executable()))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(dir+"/test", exe, 0o755))
		cmd := exec.Command(dir+"/test",
			"-test.run=^Test(Unprivileged|RoundTrip|Destination|Truncated|Malicious)$",
			"-test.count=1")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534,
			Gid: 65534}}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	dir := build(t, t.TempDir(), "f=F", "d/sub/x=X", "secret/f=S", "locked/", "closed/f=C",
		"unreadable=U", "have/d/sub/y=Y", "file=old", "conflict/d/sub=file")
	modes := map[string]fs.FileMode{"locked": 0o555, "closed": 0, "unreadable": 0, "secret/f": 0,
		"d/sub": 0o555, "d": 0o555, "file": 0o444}
	for name, mode := range modes {
		require.NoError(t, os.Chmod(dir+"/"+name, mode))
	}
	defer makeWritable(must(os.OpenRoot(dir)), ".")
	for path, at := range map[string]string{"unreadable": "unreadable", "closed": "closed",
		"closed/f": "closed/f"} {
		err := Pack(t.Context(), io.Discard, dir+"/"+path)
		isFault(t, err, syscall.EACCES)
		require.ErrorContains(t, err, dir+"/"+at)
	}
	for _, to := range []string{"locked", "locked/new", "closed", "closed/new"} {
		isFault(t, Unpack(t.Context(), bytes.NewReader(packed(t, dir+"/f")), dir+"/"+to, Options{}),
			syscall.EACCES)
	}
	// The file is read-only, but its directory is not.
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(packed(t, dir+"/f")), dir+"/file",
		Options{}))
	tree := packed(t, dir+"/d")
	// Read-only directories are moved,
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(tree), dir+"/new", Options{}))
	info, err := os.Stat(dir + "/new")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o555), info.Mode().Perm())
	require.Equal(t, snapshot(t, dir+"/d"), snapshot(t, dir+"/new"))
	// merged,
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(tree), dir+"/have", Options{}))
	require.FileExists(t, dir+"/have/d/sub/x")
	require.FileExists(t, dir+"/have/d/sub/y")
	// and removed.
	isFault(t, Unpack(t.Context(), bytes.NewReader(tree), dir+"/conflict", Options{}),
		syscall.ENOTDIR)
	require.Equal(t, []string{`"d" drwxr-xr-x`, `"d/sub" -rw-r--r-- 4 "file"`},
		snapshot(t, dir+"/conflict"))
}
