package sshbox

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// forkBase returns an image that no other test forks.
func forkBase(t *testing.T) string {
	t.Helper()
	return commitImage(t, dockertest.Busybox, map[string]string{"etc/" + randomImageName(t): ""})
}

// TestFork makes copies that go on each for itself. Their image goes with the last of them.
func TestFork(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	base := forkBase(t)
	box := newBox(t, Config{Image: base, Network: "none",
		Name: "sandshell-fork-" + base[len(base)-6:], Env: []string{"KEY=config"}})
	expect(t, box, "export KEY=changed; X=5; mkdir /srv; cd /srv; echo shared >f", 0, "")
	boxes, err := box.Fork(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, []Kept{"", KeptShells}, []Kept{box.Kept(), boxes[3].Kept()})
	t.Cleanup(func() {
		for _, b := range boxes {
			require.NoError(t, b.Close())
		}
	})
	for i, b := range boxes {
		expect(t, b, "X=$((X+"+strconv.Itoa(i)+")); echo $X $KEY $PWD $(cat f); echo own >f", 0,
			strconv.Itoa(5+i)+" changed /srv shared\n")
	}
	expect(t, box, "echo $X $(cat f)", 0, "5 shared\n")
	require.Len(t, forkImages(t, d, base), 1)
	list, err := Engine{}.Snapshots(t.Context())
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(list, func(s *Snapshot) bool {
		return s.ID == boxes[0].fork.snapshot.ID
	}), "it is nobody's but the fork's")
	further, err := boxes[0].Fork(t.Context(), 1)
	require.NoError(t, err)
	expect(t, further[0], "cat f", 0, "own\n")
	require.NoError(t, boxes[0].Close())
	require.NoError(t, boxes[0].Close(), "twice")
	require.NoError(t, boxes[1].Close())
	require.Len(t, forkImages(t, d, base), 2)
	require.NoError(t, boxes[2].Close())
	require.NoError(t, boxes[3].Close())
	require.Len(t, forkImages(t, d, base), 1)
	expect(t, further[0], "cat f; X=9", 0, "own\n")
	require.NoError(t, further[0].Close())
	require.Empty(t, forkImages(t, d, base))
}

// TestForkAllOrNone checks that a Fork that fails leaves neither boxes nor its image.
func TestForkAllOrNone(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	base := forkBase(t)
	box := newBox(t, Config{Image: base, Network: "none"})
	_, err := box.Fork(t.Context(), 0)
	require.ErrorContains(t, err, "1 or more")
	expect(t, box, "sleep 1000 &", 0, "")
	_, err = box.Fork(t.Context(), 2)
	var lost *sandbox.IncompleteError
	require.ErrorAs(t, err, &lost)

	label := base + "-copy"
	box.config.Labels = map[string]string{label: "1"}
	c := *box.config
	failing := c
	failing.Dir = "/no/such/directory"
	box.config = &failing
	_, err = box.Fork(t.Context(), 3, sandbox.Accept(sandbox.Programs))
	require.ErrorContains(t, err, "/no/such/directory")
	require.Empty(t, forkImages(t, d, base))
	box.config = &c

	// One of three fails after the others have been made.
	s := snapshot(t, box, sandbox.Accept(sandbox.Programs))
	c.Snapshot, c.Image = s.ID, ""
	boxes, err := makeAll(t.Context(), slices.Repeat([]Config{c}, 2))
	require.NoError(t, err)
	for _, b := range boxes {
		require.NoError(t, b.Close())
	}
	c.Name = "sandshell-one-" + base[len(base)-6:] // the second one cannot have it
	_, err = makeAll(t.Context(), slices.Repeat([]Config{c}, 3))
	require.True(t, errdefs.IsConflict(err), err)
	left, err := d.ContainerList(t.Context(), client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("label", label)})
	require.NoError(t, err)
	require.Empty(t, left.Items)

	attached, err := Engine{}.Join(t.Context(), box.ContainerID())
	require.NoError(t, err)
	_, err = attached.Fork(t.Context(), 1)
	require.ErrorContains(t, err, "attached to: use ForkInto")
	_, err = attached.Back(t.Context(), s)
	require.ErrorContains(t, err, "or New with Config.Snapshot")
	_, err = attached.ForkInto(t.Context(), nil)
	require.ErrorContains(t, err, "give one for each copy")
	_, err = attached.ForkInto(t.Context(), []Config{{Image: base}})
	require.ErrorContains(t, err, "Config.Image and Config.Snapshot: leave them out")
	_, err = attached.ForkInto(t.Context(), []Config{{Dir: "no"}})
	require.ErrorContains(t, err, "Config.Dir")
	into, err := attached.ForkInto(t.Context(), []Config{{Network: "none", Memory: 64 << 20},
		{Network: "none", Labels: map[string]string{label: "2"}}},
		sandbox.Accept(sandbox.Programs))
	require.NoError(t, err)
	for i, b := range into {
		inspected, err := d.ContainerInspect(t.Context(), b.ContainerID(),
			client.ContainerInspectOptions{})
		require.NoError(t, err)
		require.Equal(t, i == 0, inspected.Container.HostConfig.Memory == 64<<20)
		require.Equal(t, i == 1, inspected.Container.Config.Labels[label] == "2")
		require.NoError(t, b.Close())
	}
	require.Equal(t, []string{s.ID}, forkImages(t, d, base))
	require.NoError(t, attached.Close())
}

// TestForkOfKilled checks that Reap removes the image of a program that was killed, once no
// container uses it, and leaves that of a program that lives.
func TestForkOfKilled(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	base := forkBase(t)
	box := newBox(t, Config{Image: base, Network: "none"})
	s, err := box.snapshot(t.Context(), true, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Remove(context.Background())) })
	_, err = Engine{}.Reap(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{s.ID}, forkImages(t, d, base))

	// The same image of another process. It ends when a container uses the image: before, any New
	// would remove it.
	other := exec.Command("sleep", "1000")
	require.NoError(t, other.Start())
	end := sync.OnceFunc(func() {
		other.Process.Kill()
		other.Wait()
	})
	t.Cleanup(end)
	created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: s.ID, Cmd: []string{"true"}}})
	require.NoError(t, err)
	name := "sandshell-snapshot:" + base[len(base)-6:] + "-killed"
	_, err = d.ContainerCommit(t.Context(), created.ID, client.ContainerCommitOptions{
		Reference: name, Config: &container.Config{Labels: map[string]string{
			"sandshell.snapshot": name[len("sandshell-snapshot:"):],
			remotebox.PIDLabel:   strconv.Itoa(other.Process.Pid)}}})
	require.NoError(t, err)
	_, err = d.ContainerRemove(t.Context(), created.ID, client.ContainerRemoveOptions{})
	require.NoError(t, err)
	used, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: name, Cmd: []string{"true"}}})
	require.NoError(t, err)
	require.Len(t, forkImages(t, d, base), 2)
	end()
	_, err = Engine{}.Reap(t.Context())
	require.NoError(t, err)
	require.Len(t, forkImages(t, d, base), 2, "a container uses it")
	_, err = d.ContainerRemove(t.Context(), used.ID, client.ContainerRemoveOptions{})
	require.NoError(t, err)
	_, err = Engine{}.Reap(t.Context())
	require.NoError(t, err)
	// If a New of another test is removing the image too, Reap leaves it to that one. The image has
	// lost its name then, and is gone a moment later.
	require.Eventually(t, func() bool {
		return slices.Equal([]string{s.ID}, forkImages(t, d, base))
	}, testenv.Limit, 20*time.Millisecond)
}
