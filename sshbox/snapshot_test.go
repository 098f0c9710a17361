package sshbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// snapshot takes a snapshot, which it removes when the test ends.
func snapshot(t testing.TB, box *DockerSSHBox, opts ...sandbox.SessionOption) *Snapshot {
	t.Helper()
	s, err := box.Snapshot(t.Context(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Remove(context.Background())) })
	return s
}

// TestSnapshot checks files and sessions of a copy, and that nobody but the copy learns a secret.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	for _, image := range []string{testImage, dockertest.Busybox} {
		t.Run(image, func(t *testing.T) {
			t.Parallel()
			c := Config{Image: image, Network: "none", Env: []string{"API_KEY=secret-of-config"}}
			box := newBox(t, c)
			expect(t, box, "cd /tmp; echo made >file; X='secret-of-main'; alias hi='echo hi'; "+
				"umask 027; set -- a 'b c'", 0, "")
			gone, err := box.Open(t.Context())
			require.NoError(t, err)
			second, err := box.Open(t.Context(), sandbox.Size(30, 90), sandbox.Env("E=env"))
			require.NoError(t, err)
			expect(t, second, "mkdir -p /srv/d; cd /srv/d; export Y=2; (exit 7)", 7, "")
			require.NoError(t, gone.Close())
			box.AddEnv("ADDED=later")
			s := snapshot(t, box)
			require.Empty(t, s.Lost)
			require.Positive(t, s.Size)
			expect(t, box, "echo goes on; ls -A / | grep sandshell-", 1, "goes on\n")
			require.Len(t, box.Sessions(), 2)

			inspected, err := d.ImageInspect(t.Context(), s.ID)
			require.NoError(t, err)
			require.Equal(t, len(inspected.RootFS.Layers), s.Depth)
			history, err := d.ImageHistory(t.Context(), s.ID)
			require.NoError(t, err)
			public, err := json.Marshal([]any{inspected, history})
			require.NoError(t, err)
			require.NotContains(t, string(public), "secret-of")

			c = Config{Snapshot: s.ID, Network: "none", Env: []string{"API_KEY=new", "NEW=1"}}
			made := newBox(t, c)
			expect(t, made, `hi; echo "$PWD $X $API_KEY $NEW $2 $(umask) $(cat file)"`, 0,
				"hi\n/tmp secret-of-main new 1 b c 0027 made\n")
			expect(t, made, "ls -A / | grep sandshell-", 1, "")
			again, ok := made.Session("session-2")
			require.True(t, ok)
			expect(t, again, `echo $? $PWD $Y $E $(stty size)`, 0, "7 /srv/d 2 env 30 90\n")
			_, ok = made.Session("session-1")
			require.False(t, ok)
			third, err := made.Open(t.Context())
			require.NoError(t, err)
			require.Equal(t, "session-3", third.ID())
			expect(t, third, "echo $ADDED", 0, "later\n")

			err = s.Remove(t.Context())
			require.True(t, errdefs.IsConflict(err), err)
			require.ErrorContains(t, err, "close it first")
			require.NoError(t, made.Close())
		})
	}
}

// TestSnapshotLost checks that a snapshot that would lack something is not made.
func TestSnapshotLost(t *testing.T) {
	t.Parallel()
	testEngine(t)
	box := newBox(t, Config{Image: testImage, Network: "none",
		Mounts: []Mount{{Type: Tmpfs, Target: "/scratch"}, {Type: Tmpfs, Target: "/empty"}}})
	text(t, box, "sleep 1000 & exec 7</etc/passwd; echo >/scratch/x; "+
		"echo 127.0.0.1 me >>/etc/hosts; (setsid sleep 1001 >/dev/null 2>&1 </dev/null &)")
	job, err := box.Background(t.Context(), "exec sleep 1002")
	require.NoError(t, err)
	r, err := box.Execute(t.Context(), "sleep 1003", sandbox.Yield(time.Millisecond))
	require.NoError(t, err)
	require.Equal(t, sandbox.Running, r.State)
	_, err = box.Snapshot(t.Context(), sandbox.Accept(sandbox.AnyLoss))
	require.ErrorIs(t, err, sandbox.ErrBusy)
	_, err = box.Interrupt(t.Context())
	require.NoError(t, err)

	_, err = box.Snapshot(t.Context(), sandbox.Accept(sandbox.Programs))
	var lost *sandbox.IncompleteError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, "descriptor 7 → /etc/passwd, mount /scratch (tmpfs), mount /etc/hosts "+
		"(the engine's, changed since)", told(lost.Lost), err)
	list, err := Engine{}.Snapshots(t.Context())
	require.NoError(t, err)
	for _, s := range list {
		inspected, err := testEngine(t).ImageInspect(t.Context(), s.ID)
		require.NoError(t, err)
		require.NotContains(t, inspected.Comment, box.ContainerName())
	}

	s := snapshot(t, box, sandbox.Accept(sandbox.Programs|sandbox.Descriptors),
		sandbox.Accept(sandbox.Mounts))
	var programs []string
	for _, loss := range s.Lost {
		if loss.Kind == sandbox.Programs {
			programs = append(programs, loss.Session+" "+loss.What)
			require.Positive(t, loss.PID)
		}
	}
	slices.Sort(programs)
	require.Equal(t, []string{" sleep", job.ID() + " bash", job.ID() + " sleep",
		"main sleep"}, programs)
	made := newBox(t, Config{Snapshot: s.ID, Network: "none"})
	expect(t, made, "jobs; ls /proc/$$/fd/7; ls /scratch | wc -l; grep -c ' me' /etc/hosts", 1,
		"ls: cannot access '/proc/"+strings.TrimSpace(text(t, made, "echo $$"))+
			"/fd/7': No such file or directory\n0\n0\n")
	require.NoError(t, made.Close())

	fixed := newBox(t, Config{Image: dockertest.Busybox, Network: "none", ReadOnlyRoot: true})
	_, err = fixed.Snapshot(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "ReadOnlyRoot")
}

func told(lost []sandbox.Loss) string {
	var all []string
	for _, loss := range lost {
		all = append(all, loss.String())
	}
	return strings.Join(all, ", ")
}

// text returns what a command prints.
func text(t testing.TB, s sandbox.Session, command string) string {
	t.Helper()
	r, err := s.Execute(t.Context(), command)
	require.NoError(t, err)
	return r.Output
}

// TestSnapshotWrong checks that wrong ids say what to do.
func TestSnapshotWrong(t *testing.T) {
	t.Parallel()
	testEngine(t)
	for id, want := range map[string]string{
		"sandshell-snapshot:none": "Engine.Snapshots lists",
		dockertest.Busybox:        "no snapshot: name it in Config.Image",
		"no name!":                "Config.Snapshot",
	} {
		_, err := New(t.Context(), Config{Snapshot: id, Network: "none"})
		require.ErrorContains(t, err, want)
		require.Equal(t, strings.HasSuffix(id, ":none"), errdefs.IsNotFound(err))
		require.NotContains(t, err.Error(), "o such image")
	}
	_, err := New(t.Context(), Config{Snapshot: "a", Image: "b"})
	require.ErrorContains(t, err, "leave one of them out")
	_, err = New(t.Context(), Config{Snapshot: "a", ReadOnlyRoot: true})
	require.ErrorContains(t, err, "Config.ReadOnlyRoot")
}

// TestSnapshotList lists, prunes and removes snapshots, goes back to one, and makes a pool of it.
func TestSnapshotList(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	base := commitImage(t, dockertest.Busybox, map[string]string{"etc/" + randomImageName(t): ""})
	box, err := New(t.Context(), Config{Image: base, Network: "none", User: "1000"})
	require.NoError(t, err)
	expect(t, box, "X=1; cd /tmp; echo 1 >f", 0, "")
	first := snapshot(t, box)
	expect(t, box, "X=2; echo 2 >f; rm -rf /tmp/*", 0, "")
	before := box
	box, err = box.Back(t.Context(), first)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	_, err = before.Execute(t.Context(), "true")
	require.ErrorIs(t, err, sandbox.ErrClosed)
	expect(t, box, "echo $X $(cat f) $(id -u)", 0, "1 1 1000\n")
	second := snapshot(t, box)
	require.Equal(t, first.Depth+1, second.Depth)

	list, err := Engine{}.Snapshots(t.Context())
	require.NoError(t, err)
	var ids []string
	for _, s := range list {
		if s.ID == first.ID || s.ID == second.ID {
			ids = append(ids, s.ID)
		}
	}
	require.Equal(t, []string{second.ID, first.ID}, ids)

	pool, err := NewPool(Config{Snapshot: second.ID, Network: "none"}, 1)
	require.NoError(t, err)
	t.Cleanup(func() { pool.Close() })
	pooled, err := pool.Get(t.Context(), Handover{Env: []string{"TOKEN=t"}})
	require.NoError(t, err)
	expect(t, pooled, "echo $X $TOKEN $PWD", 0, "1 t /tmp\n")
	require.NoError(t, pool.Close())
	pruned, err := Engine{}.Prune(t.Context(), base)
	require.NoError(t, err)
	require.Empty(t, pruned.Images, "boxes use them")
	require.NoError(t, pooled.Close())
	pruned, err = Engine{}.Prune(t.Context(), base)
	require.NoError(t, err)
	require.Equal(t, []string{second.ID}, pruned.Images)
	require.NoError(t, box.Close())
	pruned, err = Engine{}.Prune(t.Context(), base)
	require.NoError(t, err)
	require.Equal(t, []string{first.ID}, pruned.Images)
	require.NoError(t, first.Remove(t.Context()), "it is gone")
	for _, s := range []*Snapshot{first, second} {
		_, err = d.ImageInspect(t.Context(), s.ID)
		require.True(t, errdefs.IsNotFound(err), fmt.Sprint(err))
	}
}

// forkImages returns the images of Forks that hold a base image.
func forkImages(t testing.TB, d *client.Client, base string) (names []string) {
	t.Helper()
	list, err := d.ImageList(t.Context(), client.ImageListOptions{
		Filters: client.Filters{}.Add("label", "sandshell.image="+base)})
	require.NoError(t, err)
	for _, i := range list.Items {
		names = append(names, i.RepoTags...)
	}
	return names
}

// TestSnapshotSameSize: a snapshot of a copy has what the copy has changed, though the sizes of
// files and of the sessions' state are the same, in the same second. Engines may compare these.
func TestSnapshotSameSize(t *testing.T) {
	t.Parallel()
	testEngine(t)
	box := newBox(t, Config{Image: dockertest.Busybox, Network: "none"})
	for i := range 3 {
		expect(t, box, fmt.Sprintf("X=%d; echo %[1]d >/etc/n", i), 0, "")
		s := snapshot(t, box)
		next := newBox(t, Config{Snapshot: s.ID, Network: "none"})
		t.Cleanup(func() { require.NoError(t, next.Close()) }) // before its snapshot is removed
		expect(t, next, "echo $X $(cat /etc/n)", 0, fmt.Sprintf("%d %[1]d\n", i))
		box = next
	}
}
