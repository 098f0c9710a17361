package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// TestSearch checks that Search returns the newest boxes first, in pages, and those that match.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := open(t, uniqueName(t), nil, small("one", nil), small("two", nil))
	for n := range 5 {
		start(t, s, StartOptions{ID: fmt.Sprint("b", n), Spec: []string{"one", "two"}[n%2],
			Owner: []string{"me", "you"}[n/3]})
	}
	require.NoError(t, s.Pause(t.Context(), "b1"))
	find := func(q Query) (ids []string) {
		for more := true; more; more = q.Page != "" {
			p, err := s.Search(t.Context(), q)
			require.NoError(t, err)
			for _, i := range p.Items {
				ids = append(ids, i.ID)
			}
			q.Page = p.Next
		}
		return ids
	}
	for limit := range 7 {
		require.Equal(t, []string{"b4", "b3", "b2", "b1", "b0"}, find(Query{Limit: limit}))
	}
	require.Equal(t, []string{"b4", "b3"}, find(Query{Owner: "you"}))
	require.Equal(t, []string{"b3", "b1"}, find(Query{Spec: "two", Limit: 1}))
	require.Equal(t, []string{"b1"}, find(Query{Status: Paused, Limit: 2}))
	require.Equal(t, []string{"b4", "b3", "b2", "b0"}, find(Query{Status: Running, Limit: 2}))
	require.Empty(t, find(Query{Owner: "nobody"}))
	infos, err := s.BatchGet(t.Context(), []string{"b1", "none", "b0"})
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, "b1", infos[0].ID)
	require.Nil(t, infos[1])
	require.Equal(t, "b0", infos[2].ID)

	// A page goes on where the last one ended, though boxes have come and gone.
	p, err := s.Search(t.Context(), Query{Limit: 2})
	require.NoError(t, err)
	for _, id := range []string{"b3", "b4"} {
		require.NoError(t, s.Delete(t.Context(), id))
	}
	start(t, s, StartOptions{ID: "b5"})
	require.Equal(t, []string{"b2", "b1", "b0"}, find(Query{Page: p.Next, Limit: 2}))

	p, err = s.Search(t.Context(), Query{Use: true, Owner: "me"})
	require.NoError(t, err)
	require.Len(t, p.Items, 3)
	for _, i := range p.Items {
		require.Positive(t, i.Use.PIDs)
		require.Positive(t, i.Use.Memory)
	}
}

func TestUsage(t *testing.T) {
	testenv.NeedsAll(t, "it has the kernel kill a program for want of memory; TestSearch asks "+
		"what boxes use, too")
	t.Parallel()
	s := open(t, uniqueName(t), nil, small("small", func(s *Spec) {
		s.Config.Memory, s.Config.PIDs = 64<<20, 50
	}))
	start(t, s, StartOptions{ID: "a"})
	execute(t, s, "a", "head -c 3000000 /dev/zero >/tmp/file; sleep 100 & sleep 100 &")
	u, err := s.Usage(t.Context(), "a")
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, u.MemoryLimit)
	require.EqualValues(t, 50, u.PIDsLimit)
	require.GreaterOrEqual(t, u.PIDs, int64(4))
	require.Greater(t, u.Memory, int64(100<<10))
	require.Greater(t, u.Disk, int64(2900000))
	require.Positive(t, u.CPU)
	require.Zero(t, u.OOMKills)
	execute(t, s, "a", "head -c 300000000 /dev/zero | tail -c 200000000 >/dev/null")
	eventually(t, "the engine says that the kernel has killed it", func() bool {
		u, err = s.Usage(t.Context(), "a")
		require.NoError(t, err)
		return u.OOMKills > 0
	})
}

// TestSnapshot checks that a snapshot has the box's files, and neither its environment nor its
// labels. With the labels, any container of the image would count as a box.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	d := dockertest.Engine(t, dockertest.Busybox)
	name := uniqueName(t)
	s := open(t, name, nil, small("small", func(s *Spec) {
		s.Env = []string{"A=spec", "API_KEY=secret-of-the-spec", "HOME=/secret-home"}
	}))
	start(t, s, StartOptions{ID: "a", Owner: "me", Env: []string{"TOKEN=secret"}})
	execute(t, s, "a", "echo snap >/tmp/file")
	spec, err := s.Snapshot(t.Context(), "a")
	require.NoError(t, err)
	dockertest.RemoveImage(t, d, spec.Config.Image)
	require.Equal(t, "before\n", execute(t, s, "a", "echo before"), "the box goes on")
	image, err := d.ImageInspect(t.Context(), spec.Config.Image)
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(image.Config.Env), "secret")
	base, err := d.ImageInspect(t.Context(), dockertest.Busybox)
	require.NoError(t, err)
	require.Subset(t, image.Config.Env, base.Config.Env)
	for label, value := range image.Config.Labels {
		// The image itself has labels with this prefix.
		if strings.HasPrefix(label, "sandshell") && !strings.HasPrefix(label, "sandshell-test.") {
			require.Empty(t, value, label)
		}
	}
	require.Empty(t, image.Config.Entrypoint)
	require.NoError(t, s.store.(*MemorySpecs).Set(spec))
	b := start(t, s, StartOptions{ID: "b", Spec: spec.ID, Owner: "you"})
	require.Equal(t, "you", b.Owner)
	require.Equal(t, "snap spec secret-of-the-spec /secret-home -\n",
		execute(t, s, "b", `echo $(cat /tmp/file) $A $API_KEY $HOME $TOKEN-`))
	err = s.Delete(t.Context(), "b") // else the image could not be removed
	require.NoError(t, err)
}

// TestSnapshotWithoutFiles checks that there is no snapshot and no copy of a box whose files gVisor
// keeps in a file of its own: the image would have none of them.
func TestSnapshotWithoutFiles(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	s := open(t, uniqueName(t), nil, small("small", func(s *Spec) {
		s.Config.Runtime = "io.containerd.runc.v2" // runc by another name
	}))
	start(t, s, StartOptions{ID: "a"})
	execute(t, s, "a", "echo >/.gvisor.filestore.7f3a")
	_, err := s.Snapshot(t.Context(), "a")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "start runsc with --overlay2=none")
	_, err = s.Fork(t.Context(), "a", 2, ForkOptions{IDs: []string{"b", "c"}})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "start runsc with --overlay2=none")
	require.Empty(t, status(t, s, "b"))
	require.Equal(t, "on\n", execute(t, s, "a", "echo on"))
}

// TestSuspendUnsupported suspends a box on an engine that makes no checkpoints. The error says so,
// and the box runs on.
func TestSuspendUnsupported(t *testing.T) {
	t.Parallel()
	d := dockertest.Engine(t, dockertest.Busybox)
	info, err := d.Info(t.Context(), client.InfoOptions{})
	require.NoError(t, err)
	if info.Info.ExperimentalBuild {
		t.Skip("the engine was started with --experimental")
	}
	s := open(t, uniqueName(t), nil, small("small", nil))
	start(t, s, StartOptions{ID: "a"})
	execute(t, s, "a", "X=5")
	err = s.Suspend(t.Context(), "a")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "--experimental")
	require.Equal(t, "5\n", execute(t, s, "a", "echo $X"))
	require.NoError(t, s.Pause(t.Context(), "a"))
	err = s.Suspend(t.Context(), "a")
	require.ErrorIs(t, err, ErrConflict)
}

// TestWatch checks that Watch sends an event when a box comes, changes or goes, also for changes
// during a time without a connection to the engine.
func TestWatch(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	link := newEngineLink(t)
	watching := open(t, name, func(o *Config) {
		o.Place = placeOn(link.docker)
	}, small("small", nil))
	s := open(t, name, nil, small("small", nil))
	ctx, stop := context.WithCancel(t.Context())
	events, err := watching.Watch(ctx)
	require.NoError(t, err)
	expect := func(id string, status Status) {
		t.Helper()
		for {
			select {
			case e := <-events:
				require.NotZero(t, e.Time)
				if e.ID == id && e.Status == status {
					return
				}
			case <-time.After(testenv.Limit):
				t.Fatalf("there is no event that %s is %s", id, status)
			}
		}
	}
	start(t, s, StartOptions{ID: "a"})
	expect("a", Starting)
	expect("a", Running)
	require.NoError(t, s.Pause(t.Context(), "a"))
	expect("a", Paused)
	require.NoError(t, s.Resume(t.Context(), "a"))
	expect("a", Running)

	link.cut()
	start(t, s, StartOptions{ID: "b"})
	require.NoError(t, s.Delete(t.Context(), "a"))
	link.mend()
	expect("a", Missing)
	require.NoError(t, s.Delete(t.Context(), "b"))
	expect("b", Missing)
	stop()
	for range events {
	}
}
