package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// sh runs a script in a directory.
func sh(t testing.TB, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", script, out)
}

// exact has situations, and what is done to them. Going back must undo that exactly.
var exact = map[string][2]string{
	"content":    {"echo a >f", "echo b >f"},
	"same size":  {"echo a >f; touch -d 2001-01-01 f", "echo b >f; touch -d 2001-01-01 f"},
	"modes":      {"echo a >f; chmod 4751 f; mkdir d; chmod 3755 d", "chmod 600 f; chmod 711 d"},
	"setuid":     {"echo a >f; chmod 6755 f", "echo b >f; chmod 6755 f"},
	"times":      {"echo a >f; touch -d 1999-12-31T23:59:59.123456789 f", "touch f"},
	"dir's time": {"mkdir d; touch -d 1999-12-31T23:59:59.123456789 d .", "touch d/f f"},
	"symlinks": {"ln -s /etc/passwd l; ln -s .. up; ln -s x dangling",
		"rm l; ln -s y l; rm up"},
	"hard links":   {"echo a >f; ln f g; mkdir d; ln f d/h", "rm g; cp f x; mv x d/h; echo b >g"},
	"linked now":   {"echo a >f; cp -p f g", "ln -f f g"},
	"other leader": {"echo a >b; ln b c", "rm b; echo x >a; ln a b; ln -f a c"},
	"FIFO":         {"mkfifo -m 640 p; echo a >f", "rm p f; mkfifo f; echo a >p"},
	"empty dirs":   {"mkdir -p a/b/c d", "rm -r a; rmdir d; mkdir e"},
	"holes": {"truncate -s 64M f; echo x | dd of=f bs=1 seek=30M conv=notrunc status=none; " +
		"truncate -s 8M hole", "echo x | dd of=f bs=1 seek=50M conv=notrunc status=none; rm hole"},
	"names": {"touch \"$(printf 'a\\nb')\" \"$(printf '\\377\\376')\" -- '-rf' ' ' '*'",
		"rm -f -- ./*; touch x"},
	"dir for file": {"echo a >x; mkdir -p y/z; echo b >y/z/f",
		"rm -r x y; mkdir -p x/q; echo c >y"},
	"link for dir": {"mkdir d; echo a >d/f", "mv d e; ln -s e d; echo b >d/f"},
	"deep": {"d=; for i in $(seq 100); do d=$d/d; done; mkdir -p .$d; echo a >.$d/f",
		"rm -r d"},
	"unreadable":     {"echo a >f; mkdir d; echo b >d/g", "chmod 0 f d"},
	"was unreadable": {"echo a >f; mkdir d; echo b >d/g; chmod 500 d", "chmod 700 d; rm -r d f"},
	"read-only dirs": {"mkdir -p d/e; echo a >d/e/f; chmod 555 d/e d",
		"chmod -R u+w d; rm -r d/e; echo b >d/x; chmod 555 d"},
	"long names": {"touch $(printf '%0255d' 1); mkdir $(printf '%0255d' 2)",
		"rm $(printf '%0255d' 1); touch $(printf '%0255d' 2)/x"},
	"everything gone": {"for i in $(seq 50); do mkdir d$i; echo $i >d$i/f; done", "rm -r ./*"},
	"large": {"head -c 3000000 /dev/urandom >f",
		"printf x | dd of=f bs=1 seek=2000000 conv=notrunc status=none"},
}

func TestExact(t *testing.T) {
	t.Parallel()
	for name, steps := range exact {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "work")
			require.NoError(t, os.Mkdir(dir, 0o755))
			t.Cleanup(func() { exec.Command("chmod", "-R", "u+rwx", dir).Run() })
			sh(t, dir, steps[0])
			h := open(t, dir)
			before := described(t, dir)
			first, err := h.Save(t.Context())
			require.NoError(t, err)
			requireSame(t, before, described(t, dir))
			sh(t, dir, steps[1])
			changed := described(t, dir)
			list, err := h.Changes(t.Context(), first)
			require.NoError(t, err)
			if name != "dir's time" && (name != "unreadable" || os.Geteuid() == 0) {
				require.NotEmpty(t, list)
			}
			saved, err := h.Back(t.Context(), first)
			require.NoError(t, err)
			requireSame(t, before, described(t, dir), "back to the first")
			list, err = h.Changes(t.Context(), first)
			require.NoError(t, err)
			require.Empty(t, list)
			require.Equal(t, 2, saved.ID)
			again, err := h.Back(t.Context(), saved)
			require.NoError(t, err)
			require.Zero(t, again.ID, "nothing was unsaved")
			requireSame(t, changed, described(t, dir), "and to what was there")
		})
	}
}

// TestAsPlainUser has TestExact, TestSkipped and TestRandom as another user than root.
func TestAsPlainUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("it is one already")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "history-user-")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "test")
	data, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, data, 0o755))
	require.NoError(t, os.Chown(dir, 12345, 12345))
	cmd := exec.Command(program, "-test.run=^(TestExact|TestRandom|TestSkipped)$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "SANDSHELL_TEST=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestSkipped: what cannot be saved is told, and stays where it is.
func TestSkipped(t *testing.T) {
	dir := t.TempDir()
	h := open(t, dir)
	sh(t, dir, "echo a >f; mkdir d")
	first, err := h.Save(t.Context())
	require.NoError(t, err)
	t.Chdir(dir) // a socket's name is short
	l, err := net.Listen("unix", "d/socket")
	require.NoError(t, err)
	defer l.Close()
	want := 1
	if os.Geteuid() == 0 {
		require.NoError(t, unix.Mknod("null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		require.NoError(t, os.Mkdir("mount", 0o755))
		if unix.Mount("none", "mount", "tmpfs", 0, "") == nil {
			defer unix.Unmount(filepath.Join(dir, "mount"), 0)
			sh(t, dir, "echo x >mount/f")
			want++
		}
		want++
	}
	p, err := h.Save(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, p.SkippedCount, p.Skipped)
	assert.Equal(t, sandbox.Skipped{Path: "d/socket", Reason: "it is a socket"}, p.Skipped[0])
	sh(t, dir, "echo b >f")
	_, err = h.Back(t.Context(), first)
	var left *sandbox.LeftError
	require.ErrorAs(t, err, &left)
	assert.Equal(t, want, left.Count, left.Left)
	data, err := os.ReadFile("f")
	require.NoError(t, err)
	assert.Equal(t, "a\n", string(data), "all else is back")
	_, err = os.Lstat("d/socket")
	require.NoError(t, err)
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, dir)
	sh(t, dir, "for i in $(seq 300); do mkdir d$i; echo $i >d$i/f; done")
	before := described(t, dir)
	first, err := h.Save(t.Context())
	require.NoError(t, err)
	sh(t, dir, "rm -r ./*; echo x >y")
	for n := 1; ; n = n*3/2 + 1 { // ends at each of many moments
		ctx := &countedContext{Context: t.Context(), left: n}
		_, err := h.Back(ctx, first)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Save(&countedContext{Context: t.Context(), left: n / 4})
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	requireSame(t, before, described(t, dir))
	all, err := h.Points(t.Context())
	require.NoError(t, err)
	_, err = h.Back(t.Context(), all[1])
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(dir, "y"))
	require.NoError(t, err, "what was there before the first Back is saved")
}

// A countedContext ends when it has been asked so many times.
type countedContext struct {
	context.Context
	mu   sync.Mutex
	left int
}

func (c *countedContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestFullDisk: a Save or a Back for which there is no room fails, and leaves what there was.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a small file system needs root: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	dir := filepath.Join(disk, "work")
	require.NoError(t, os.Mkdir(dir, 0o755))
	h, err := Open(dir, filepath.Join(disk, "history"), Limits{})
	require.NoError(t, err)
	sh(t, dir, "head -c 1000000 /dev/urandom >f; echo a >g")
	before := described(t, dir)
	first, err := h.Save(t.Context())
	require.NoError(t, err)
	sh(t, dir, "head -c 1500000 /dev/urandom >h")
	_, err = h.Save(t.Context())
	require.ErrorIs(t, err, unix.ENOSPC)
	all, err := h.Points(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = h.Back(t.Context(), first)
	require.ErrorIs(t, err, unix.ENOSPC, "what is there cannot be saved")
	sh(t, dir, "rm h f")
	saved, err := h.Save(t.Context())
	require.NoError(t, err)
	sh(t, disk, "dd if=/dev/zero of=filler bs=4k status=none || true")
	_, err = h.Back(t.Context(), first)
	require.ErrorIs(t, err, unix.ENOSPC)
	sh(t, disk, "rm filler")
	_, err = h.Back(t.Context(), first)
	require.NoError(t, err)
	requireSame(t, before, described(t, dir))
	_, err = h.Back(t.Context(), saved)
	require.NoError(t, err)
}

// TestTwo: Histories of one directory wait for each other.
func TestTwo(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), filepath.Join(t.TempDir(), "history")
	sh(t, dir, "echo a >f")
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			h, err := Open(dir, base, Limits{})
			if !assert.NoError(t, err) {
				return
			}
			for k := range 5 {
				os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(fmt.Sprint(k)), 0o644)
				_, err := h.Save(t.Context())
				assert.NoError(t, err)
			}
		})
	}
	wait.Wait()
	h, err := Open(dir, base, Limits{})
	require.NoError(t, err)
	all, err := h.Points(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 20)
	for i, p := range all {
		require.Equal(t, i+1, p.ID)
	}
	// A lock that is not released: the call ends with its context.
	o, err := h.begin(t.Context())
	require.NoError(t, err)
	defer o.end()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = h.Save(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Open(dir, filepath.Join(dir, "history"), Limits{})
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = Open(filepath.Join(dir, "none"), filepath.Join(dir, "history"), Limits{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	h := open(t, dir)
	_, err = h.Back(t.Context(), sandbox.Point{ID: 3})
	require.ErrorIs(t, err, fs.ErrNotExist)
	sh(t, dir, "touch 1 2 3 4; head -c 5000 /dev/zero >5")
	h.limits.Entries = 4
	_, err = h.Save(t.Context())
	require.ErrorContains(t, err, "more than 4 entries")
	h.limits.Entries, h.limits.Bytes = 100, 4999
	_, err = h.Save(t.Context())
	require.ErrorContains(t, err, "more than 4999 bytes")
	h.limits.Bytes = 5000
	_, err = h.Save(t.Context())
	require.NoError(t, err)
	h.limits = Limits{}.withDefaults()
	sh(t, dir, "for i in $(seq 510); do mkdir d; cd d; done")
	_, err = h.Save(t.Context())
	require.ErrorIs(t, err, unix.ELOOP)
}

// TestOthersFiles: a Back writes into no file outside, also not by a hard link or a symbolic one.
func TestOthersFiles(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	h := open(t, dir)
	sh(t, dir, "echo a >f; mkdir d; echo b >d/g")
	first, err := h.Save(t.Context())
	require.NoError(t, err)
	sh(t, outside, "echo theirs >f; mkdir d; echo theirs >d/g")
	sh(t, dir, "rm -r f d; ln "+outside+"/f f; ln -s "+outside+"/d d")
	theirs := described(t, outside)
	_, err = h.Back(t.Context(), first)
	require.NoError(t, err)
	got := described(t, outside)
	requireSame(t, theirs, got)
}

// TestDamaged: whatever other programs make of the store, a call returns, and changes nothing
// outside.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for _, name := range []string{headsFile, treesFile, contentsFile, indexFile} {
		for _, how := range []string{": >", "printf '\\377%.0s' $(seq 200) >", "truncate -s 1G ",
			"printf '../../x' | dd conv=notrunc status=none bs=1 seek=60 of="} {
			t.Run(name+" "+strings.Fields(how)[0], func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				h := open(t, dir)
				sh(t, dir, "echo a >f; mkdir d; echo b >d/g; ln -s x l")
				first, err := h.Save(t.Context())
				require.NoError(t, err)
				sh(t, dir, "rm -r f d l")
				sh(t, h.store, how+name)
				h.Changes(t.Context(), first)
				_, err = h.Back(t.Context(), first)
				if err != nil && !errors.Is(err, errDamaged) && !errors.Is(err, fs.ErrNotExist) {
					var left *sandbox.LeftError
					require.ErrorAs(t, err, &left)
				}
				all, err := h.Points(t.Context())
				if err == nil {
					require.LessOrEqual(t, len(all), 2)
				}
			})
		}
	}
}
