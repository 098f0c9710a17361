package kubebox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// told returns losses as text.
func told(lost []sandbox.Loss) string {
	var all []string
	for _, loss := range lost {
		all = append(all, loss.String())
	}
	return strings.Join(all, ", ")
}

// TestSnapshot checks files and sessions of a copy, of the image's user and of root, and what
// becomes of files of the image that were changed and removed.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	dir := t.TempDir()
	box := newBox(t, Config{Cluster: c, Env: []string{"KEY=config$x", "OLD=1"}})
	does(t, box, "cd /tmp; echo made >file; ln file 'b c'; ln -s file l; mkfifo p; mkdir -p d/e; "+
		"truncate -s 100M holes; printf x >>holes; chmod 640 file; touch -d 2001-02-03 d; "+
		"X='secret-of-main'; alias hi='echo hi'; umask 027; set -- a 'b c'", "")
	second, err := box.Open(t.Context(), sandbox.Size(30, 90), sandbox.Env("E=env"))
	require.NoError(t, err)
	r, err := second.Execute(t.Context(), "cd /tmp/d; export Y=2; (exit 7)")
	require.NoError(t, err)
	require.Equal(t, 7, r.ExitCode)
	s, err := box.Snapshot(t.Context(), dir)
	require.NoError(t, err)
	require.Empty(t, s.Lost)
	require.Less(t, s.Size, int64(20<<20), "neither the image's files nor holes")
	info, err := os.Stat(s.ID)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	list, err := Snapshots(dir)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, testImage, list[0].Image)
	does(t, box, "hi; jobs; ls -A /var/tmp /tmp | grep sandshell", "hi\n")
	show := "cd /tmp; ls -lin --time-style=full-iso . d | sed 's/^ *[0-9]* //'; stat -c '%b %s' " +
		"holes; cat file; cd - >/dev/null"
	want, err := box.Execute(t.Context(), show)
	require.NoError(t, err)

	made, err := New(t.Context(), Config{Cluster: c, Snapshot: s.ID,
		Env: []string{"KEY=new", "NEW=1"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, made.Close()) })
	does(t, made, `hi; echo "$PWD $X $KEY $NEW $2 $(umask)"`,
		"hi\n/tmp secret-of-main new 1 b c 0027\n")
	does(t, made, show, want.Output)
	does(t, made, "[ file -ef 'b c' ] && ls -A /var/tmp /tmp | grep -c sandshell", "0\n")
	again, ok := made.Session("session-1")
	require.True(t, ok)
	r, err = again.Execute(t.Context(), `echo $? $PWD $Y $E $(stty size)`)
	require.NoError(t, err)
	require.Equal(t, "7 /tmp/d 2 env 30 90\n", r.Output)

	// A box of a box of a snapshot; without the file nothing can be made.
	does(t, made, "rm -r d; echo changed >file; X=2", "")
	back, err := made.Back(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, back.Close()) })
	does(t, back, show, want.Output)
	_, err = made.Execute(t.Context(), "true")
	require.ErrorIs(t, err, sandbox.ErrClosed)
	require.NoError(t, s.Remove())
	require.NoError(t, s.Remove(), "it is gone")
	_, err = New(t.Context(), Config{Cluster: c, Snapshot: s.ID})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "Config.Snapshot")
	other := filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(other, []byte("no snapshot, but some text"), 0o600))
	_, err = NewPool(Config{Cluster: c, Snapshot: other}, "p", 1)
	require.ErrorContains(t, err, "no snapshot of a KubeBox")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// TestSnapshotRoot checks what root can do to an image: removed and changed files, other owners.
func TestSnapshotRoot(t *testing.T) {
	t.Parallel()
	c := baseline(t)
	box := newBox(t, Config{Cluster: c, User: "root"})
	const show = `ls -ln --time-style=full-iso /etc /opt | grep -vE ' (resolv.conf|hosts|hostname)$'; ls /usr/share/doc;
		cat /etc/issue /etc/hostname-copy; stat -c '%u:%g %a %y %n' /opt/x /etc /usr/bin/env`
	does(t, box, "rm -rf /usr/share/doc; echo changed >/etc/issue; mv /etc/profile /opt; "+
		"echo x >/opt/x; chown 12:34 /opt/x; chmod 4750 /opt/x; cp -p /usr/bin/env /opt; "+
		"touch -d 2001-02-03 /usr/bin/env; echo 1 >/etc/hostname-copy", "")
	want, err := box.Execute(t.Context(), show)
	require.NoError(t, err)
	boxes, err := box.Fork(t.Context(), 2)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, b := range boxes {
			require.NoError(t, b.Close())
		}
	})
	for i, b := range boxes {
		does(t, b, show, want.Output)
		does(t, b, "echo own"+strconv.Itoa(i)+" >/opt/x; cat /opt/x", "own"+strconv.Itoa(i)+"\n")
	}
	does(t, box, "cat /opt/x", "x\n")
	temporary, err := filepath.Glob(filepath.Join(os.TempDir(), forkPrefix+"*"))
	require.NoError(t, err)
	require.Empty(t, temporary)
}

// TestSnapshotLost checks that a snapshot that would lack something is not made, and that nothing
// comes into a volume.
func TestSnapshotLost(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	dir := t.TempDir()
	box := newBox(t, Config{Cluster: c, Mounts: []Mount{{Target: "/data"},
		{Type: Tmpfs, Target: "/scratch"}, {Type: Tmpfs, Target: "/empty"}}})
	does(t, box, "echo v >/data/v; echo x >/scratch/x; exec 7</etc/passwd; cd /tmp; "+
		"python3 -c 'import socket; socket.socket(1).bind(\"/tmp/s\")'; (sleep 1000 &)", "")
	r, err := box.Execute(t.Context(), "sleep 1003", sandbox.Yield(time.Millisecond))
	require.NoError(t, err)
	require.Equal(t, sandbox.Running, r.State)
	_, err = box.Snapshot(t.Context(), dir, sandbox.Accept(sandbox.AnyLoss))
	require.ErrorIs(t, err, sandbox.ErrBusy)
	_, err = box.Interrupt(t.Context())
	require.NoError(t, err)
	_, err = box.Snapshot(t.Context(), dir, sandbox.Accept(sandbox.Programs))
	var lost *sandbox.IncompleteError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, "descriptor 7 → /etc/passwd", told(lost.Lost))
	_, err = box.Snapshot(t.Context(), dir, sandbox.Accept(sandbox.Programs|sandbox.Descriptors))
	require.ErrorAs(t, err, &lost)
	require.Equal(t, "mount /data (volume), mount /scratch (tmpfs), file /tmp/s (it is a socket)",
		told(lost.Lost))
	_, err = box.Fork(t.Context(), 1)
	require.ErrorAs(t, err, &lost)
	_, err = box.Snapshot(t.Context(), filepath.Join(dir, "missing"),
		sandbox.Accept(sandbox.AnyLoss))
	require.ErrorIs(t, err, fs.ErrNotExist)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	s, err := box.Snapshot(t.Context(), dir, sandbox.Accept(sandbox.AnyLoss))
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(s.Lost, func(l sandbox.Loss) bool {
		return l.Kind == sandbox.Programs && l.PID > 0
	}), s.Lost)
	made := newBox(t, Config{Cluster: c, Snapshot: s.ID, Mounts: []Mount{{Target: "/data"}}})
	does(t, made, "ls /data; ls /tmp; pwd; jobs", "/tmp\n")

	// An image that is not the snapshot's lacks files.
	_, err = New(t.Context(), Config{Cluster: c, Snapshot: s.ID, Image: "sandshell-busybox"})
	require.ErrorAs(t, err, &lost)
	require.ErrorContains(t, err, "snapshot "+s.ID)

	joined, err := c.Join(t.Context(), made.PodName())
	require.NoError(t, err)
	_, err = joined.Fork(t.Context(), 1)
	require.ErrorContains(t, err, "attached to: use Snapshot")
	require.NoError(t, joined.Close())
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the test's reason")
	cancel(why)
	_, err = made.Snapshot(ended, dir)
	require.ErrorIs(t, err, why)
}

// TestLikeAndHistory: sessions that are like others, and histories of directories, in a pod.
func TestLikeAndHistory(t *testing.T) {
	t.Parallel()
	box := newBox(t, Config{Cluster: cluster(t)})
	does(t, box, "cd /usr; X=1; f() { echo f$X; }; set -u", "")
	like, err := box.Open(t.Context(), sandbox.Like(box))
	require.NoError(t, err)
	r, err := like.Execute(t.Context(), "echo $PWD $-; f")
	require.NoError(t, err)
	require.Contains(t, r.Output, "/usr ")
	require.Contains(t, r.Output, "f1\n")
	hosttest.History(t, box, "/tmp/work")
}
