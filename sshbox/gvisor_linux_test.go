//go:build linux

package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/enginetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// startGVisorEngine starts an engine with the runtimes runsc, sandboxed and runsc-memory. The first
// two are the same, but to one of an unknown name New gives boxd in a volume of its own. The last
// one keeps files in memory, as is its default. flags are added to those of dockerd. The engine has
// testImage and dockertest.Busybox.
func startGVisorEngine(t *testing.T, flags ...string) *enginetest.Engine {
	t.Helper()
	where, err := exec.Command("../testdata/gvisor/build", "--where").Output()
	require.NoError(t, err)
	runsc := filepath.Join(strings.TrimSpace(string(where)), "runsc")
	if _, err := os.Stat(runsc); err != nil {
		t.Skip("there is no runsc: testdata/gvisor/build makes one, as make nightly does")
	}
	return enginetest.Start(t, enginetest.Config{Images: []string{testImage, dockertest.Busybox},
		JSON: fmt.Sprintf(`{"runtimes": {
			"runsc": {"path": %[1]q,
				"runtimeArgs": ["--network=none", "--ignore-cgroups", "--overlay2=none"]},
			"sandboxed": {"path": %[1]q,
				"runtimeArgs": ["--network=none", "--ignore-cgroups", "--overlay2=none"]},
			"runsc-memory": {"path": %[1]q,
				"runtimeArgs": ["--network=none", "--ignore-cgroups"]}}}`, runsc),
		Flags: append([]string{}, flags...)})
}

// TestGVisor makes copies of boxes with all that runs in them.
func TestGVisor(t *testing.T) {
	testenv.NeedsFull(t, "it needs a gVisor, whose build takes minutes, and starts an engine; "+
		"TestRenewSessions, TestReapKeepers and TestRenew of boxd cover its parts")
	e := startGVisorEngine(t, "--experimental")
	d := e.Client
	for _, test := range []struct {
		name string
		f    func(*testing.T, *client.Client)
	}{
		{"Fork", gvisorFork}, {"New", gvisorNew}, {"OneMoment", gvisorOneMoment},
		{"Mounts", gvisorMounts}, {"Busybox", gvisorBusybox}, {"Attached", gvisorAttached},
		{"FilesInMemory", gvisorFilesInMemory}, {"Refused", gvisorRefused},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.f(t, d)
			left, err := d.ContainerList(t.Context(), client.ContainerListOptions{All: true})
			require.NoError(t, err)
			require.Empty(t, left.Items, "containers, and what keeps checkpoints")
			images, err := d.ImageList(t.Context(), client.ImageListOptions{
				Filters: client.Filters{}.Add("label", "sandshell.snapshot")})
			require.NoError(t, err)
			require.Empty(t, images.Items)
			checkpoints, err := filepath.Glob(filepath.Join(e.Dir,
				"root/containers/*/checkpoints/*"))
			require.NoError(t, err)
			require.Empty(t, checkpoints)
		})
	}
}

// gvisorBox makes a box on the engine, and closes it at the latest when the test ends.
func gvisorBox(t *testing.T, c Config) *DockerSSHBox {
	t.Helper()
	box, err := New(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	return box
}

// input types a text, and waits until the new output matches.
func input(t *testing.T, s sandbox.Session, text, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	r, err := s.Input(ctx, text, sandbox.Until(regexp.MustCompile(output)))
	require.NoError(t, err)
	require.Regexp(t, output, r.Output)
}

// hostKey returns the host key of a box's boxd.
func hostKey(t *testing.T, b *DockerSSHBox) string {
	t.Helper()
	signer := newKey(t, "")
	key, err := b.host.AddGuest(t.Context(), signer.PublicKey())
	require.NoError(t, err)
	return string(ssh.MarshalAuthorizedKey(key))
}

// identity returns what a box must not have in common with its copies.
func identity(t *testing.T, d *client.Client, b *DockerSSHBox) []string {
	t.Helper()
	inspected, err := d.ContainerInspect(t.Context(), b.ContainerID(),
		client.ContainerInspectOptions{})
	require.NoError(t, err)
	name := b.ContainerID()[:12]
	expect(t, b, "echo $HOSTNAME $(hostname) $(cat /etc/hostname) $(env | grep ^HOSTNAME=)", 0,
		fmt.Sprintf("%[1]s %[1]s %[1]s HOSTNAME=%[1]s\n", name))
	return []string{inspected.Container.Config.Labels["sandshell.box"], hostKey(t, b), name,
		text(t, b, "echo $RANDOM $RANDOM $RANDOM")}
}

// counted returns how far a job has counted. Its log begins with 1, and lacks no number.
func counted(t *testing.T, b *DockerSSHBox, id string) int {
	t.Helper()
	j, ok := b.Job(id)
	require.True(t, ok)
	log, _, err := j.Logs(t.Context(), 0)
	require.NoError(t, err)
	lines := strings.Fields(string(log))
	for i, line := range lines {
		require.Equal(t, strconv.Itoa(i+1), line)
	}
	return len(lines)
}

// served returns what a server in a box answers.
func served(t *testing.T, b *DockerSSHBox, path string) string {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: b.Dial}
	defer transport.CloseIdleConnections()
	r, err := (&http.Client{Transport: transport}).Get("http://127.0.0.1:8000/" + path)
	require.NoError(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(body)
}

// gvisorFork makes 8 copies of a box in which a program asks a question, a REPL waits, a server
// serves, a job counts and a descriptor is open, and copies of a copy.
func gvisorFork(t *testing.T, d *client.Client) {
	ctx := t.Context()
	box := gvisorBox(t, Config{Docker: d, Image: testImage, Network: "none", Runtime: "runsc",
		Env: []string{"API_KEY=config"}})
	box.AddEnv("ADDED=later")
	expect(t, box, "cd /srv; X=41; f() { echo f$X; }; echo open >open; exec 7<open; "+
		"echo file >file; (exit 3)", 3, "")
	question, err := box.Open(ctx)
	require.NoError(t, err)
	r, err := question.Execute(ctx, `read -p "name? " n; echo hello $n; echo $n >>/srv/names`)
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, r.State)
	repl, err := box.Open(ctx)
	require.NoError(t, err)
	_, err = repl.Execute(ctx, "python3 -q", sandbox.Until(regexp.MustCompile(`>>> $`)))
	require.NoError(t, err)
	input(t, repl, "x = 41\n", `>>> $`)
	server, err := box.Background(ctx, "cd /srv && exec python3 -m http.server 8000 2>/dev/null")
	require.NoError(t, err)
	job, err := box.Background(ctx, "i=0; while sleep 0.1; do echo $((i+=1)); done")
	require.NoError(t, err)
	waitFor(t, "the server", func() bool {
		c, err := box.Dial(ctx, "tcp", "127.0.0.1:8000")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	waitFor(t, "the job", func() bool { return counted(t, box, job.ID()) > 2 })

	begin := time.Now()
	boxes, err := box.Fork(ctx, 8)
	require.NoError(t, err)
	t.Logf("a snapshot and 8 copies: %v, of %d bytes", time.Since(begin).Round(time.Millisecond),
		boxes[0].fork.snapshot.Size)
	require.Equal(t, KeptAll, boxes[0].Kept())
	check := func(b *DockerSSHBox, i int) {
		t.Helper()
		require.Len(t, b.Sessions(), 3)
		require.Len(t, b.Jobs(), 2)
		expect(t, b, fmt.Sprintf(`echo $? $PWD $X $(cat <&7) $API_KEY; X=$((X+%d)); f; `+
			`echo %[1]d >file`, i), 0, fmt.Sprintf("3 /srv 41 open config\nf%d\n", 41+i))
		q, ok := b.Session(question.ID())
		require.True(t, ok)
		input(t, q, fmt.Sprintf("ann-%d\n", i), fmt.Sprintf("hello ann-%d\n", i))
		_, err := q.Wait(ctx)
		if err != nil {
			require.ErrorIs(t, err, sandbox.ErrIdle)
		}
		p, ok := b.Session(repl.ID())
		require.True(t, ok)
		input(t, p, fmt.Sprintf("x += %d; x\n", i), fmt.Sprintf(`\n%d\n>>> $`, 41+i))
		require.Equal(t, fmt.Sprintln(i), served(t, b, "file"))
		require.Equal(t, fmt.Sprintf("ann-%d\n", i), served(t, b, "names"))
		n := counted(t, b, job.ID())
		waitFor(t, "the job to go on", func() bool { return counted(t, b, job.ID()) > n })
		further, err := b.Open(ctx)
		require.NoError(t, err)
		require.Equal(t, "session-3", further.ID())
		expect(t, further, "echo $ADDED $API_KEY", 0, "later config\n")
	}
	seen := map[string]bool{}
	for i, b := range append(slices.Clone(boxes), box) {
		check(b, i)
		for _, own := range identity(t, d, b) {
			require.False(t, seen[own], own)
			seen[own] = true
		}
	}
	copied, err := boxes[1].Fork(ctx, 2)
	require.NoError(t, err)
	for i, b := range copied {
		for _, own := range identity(t, d, b) {
			require.False(t, seen[own], own)
			seen[own] = true
		}
		expect(t, b, "f; cat file", 0, "f42\n1\n")
		p, ok := b.Session(repl.ID())
		require.True(t, ok)
		input(t, p, fmt.Sprintf("x += %d; x\n", i), fmt.Sprintf(`\n%d\n>>> $`, 42+i))
		require.Equal(t, "1\n", served(t, b, "file"))
		n := counted(t, b, job.ID())
		waitFor(t, "the job to go on", func() bool { return counted(t, b, job.ID()) > n })
		j, ok := b.Job(server.ID())
		require.True(t, ok)
		require.NoError(t, j.Kill(ctx))
	}
	require.Equal(t, "1\n", served(t, boxes[1], "file"))
	for _, b := range append(boxes, copied...) {
		require.NoError(t, b.Close())
	}
	require.NoError(t, box.Close())
}

// gvisorNew makes boxes of a snapshot with another Config, a pool, and goes back.
func gvisorNew(t *testing.T, d *client.Client) {
	ctx := t.Context()
	c := Config{Docker: d, Image: testImage, Network: "none", Runtime: "runsc",
		Env: []string{"API_KEY=old", "OTHER=same"}, User: "1000:1000", Linger: time.Hour}
	box := gvisorBox(t, c)
	expect(t, box, "cd /var/tmp; X=1; echo 1 >f", 0, "")
	q, err := box.Open(ctx, sandbox.Env("MINE=session", "OTHER=session"))
	require.NoError(t, err)
	r, err := q.Execute(ctx, `read -p "n? " n; (exit 4)`)
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, r.State)
	s, err := box.Snapshot(ctx)
	require.NoError(t, err)
	t.Logf("snapshot: %d bytes", s.Size)
	require.Equal(t, KeptAll, s.Kept)
	require.Empty(t, s.Lost)
	list, err := Engine{Docker: d}.Snapshots(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, []any{s.ID, KeptAll, s.Size}, []any{list[0].ID, list[0].Kept, list[0].Size})

	made := gvisorBox(t, Config{Docker: d, Snapshot: s.ID, Network: "none", User: "1000:1000",
		Env: []string{"API_KEY=new", "OTHER=new"}, Keep: true})
	identity(t, d, made)
	expect(t, made, "echo $API_KEY $OTHER $X $PWD $(id -u); env | grep API_KEY", 0,
		"new new 1 /var/tmp 1000\nAPI_KEY=new\n")
	copied, ok := made.Session(q.ID())
	require.True(t, ok)
	_, err = copied.Input(ctx, "n\n")
	require.NoError(t, err)
	expect(t, copied, "echo $? $API_KEY $OTHER $MINE $n", 0, "4 new session session n\n")
	fresh, err := made.Open(ctx)
	require.NoError(t, err)
	expect(t, fresh, "echo $API_KEY", 0, "new\n")
	// It is kept, although its box was not, and another program finds it.
	require.NoError(t, made.Detach())
	again, err := Engine{Docker: d}.Attach(ctx, made.ContainerID())
	require.NoError(t, err)
	expect(t, again, "echo $X", 0, "1\n")
	require.NoError(t, again.Close())

	_, err = New(ctx, Config{Docker: d, Snapshot: s.ID, Network: "none", User: "0"})
	require.ErrorContains(t, err, "must have its Config: User")
	_, err = New(ctx, Config{Docker: d, Snapshot: s.ID, Network: "none", Outward: true})
	require.ErrorIs(t, err, errors.ErrUnsupported)

	pool, err := NewPool(Config{Docker: d, Snapshot: s.ID, Network: "none", User: "1000:1000"}, 2)
	require.NoError(t, err)
	pooled, err := pool.Get(ctx, Handover{Env: []string{"API_KEY=handed over"}})
	require.NoError(t, err)
	expect(t, pooled, "echo $X $API_KEY", 0, "1 handed over\n")
	require.NoError(t, pool.Close())
	err = s.Remove(ctx)
	require.True(t, errdefs.IsConflict(err), err)
	require.NoError(t, pooled.Close())

	expect(t, box, "X=2; echo 2 >f", 0, "")
	before := box
	box, err = box.Back(ctx, s)
	require.NoError(t, err)
	_, err = before.Execute(ctx, "true")
	require.ErrorIs(t, err, sandbox.ErrClosed)
	expect(t, box, "echo $X $(cat f)", 0, "1 1\n")
	expect(t, box, "echo more >g", 0, "")
	second, err := box.Snapshot(ctx)
	require.NoError(t, err)
	require.Equal(t, s.Depth+1, second.Depth)
	require.NoError(t, box.Close())
	require.NoError(t, s.Remove(ctx))
	box = gvisorBox(t, Config{Docker: d, Snapshot: second.ID, Network: "none", User: "1000:1000"})
	expect(t, box, "echo $X $(cat f)", 0, "1 1\n")
	require.NoError(t, box.Close())

	// docker container prune has removed the memory.
	_, err = d.ContainerRemove(ctx, strings.Replace(second.ID, ":", "-", 1),
		client.ContainerRemoveOptions{})
	require.NoError(t, err)
	_, err = New(ctx, Config{Docker: d, Snapshot: second.ID, Network: "none", User: "1000:1000"})
	require.ErrorContains(t, err, "memory of the snapshot is gone")
	pruned, err := Engine{Docker: d}.Prune(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{second.ID}, pruned.Images)
}

// TestGVisorNotExperimental checks what an engine without --experimental can do.
func TestGVisorNotExperimental(t *testing.T) {
	testenv.NeedsFull(t, "it needs a gVisor, whose build takes minutes, and starts an engine; "+
		"TestSnapshot covers what it does")
	d := startGVisorEngine(t).Client
	box := gvisorBox(t, Config{Docker: d, Image: testImage, Network: "none", Runtime: "runsc"})
	expect(t, box, "X=1; cd /srv; echo f >f", 0, "")
	s, err := box.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, KeptShells, s.Kept)
	made := gvisorBox(t, Config{Docker: d, Snapshot: s.ID, Network: "none", Runtime: "runsc"})
	expect(t, made, "echo $X $(cat f)", 0, "1 f\n")
	require.NoError(t, made.Close())
	require.NoError(t, s.Remove(t.Context()))
	text(t, box, "sleep 1000 & echo >/tmp/f")
	_, err = box.Snapshot(t.Context())
	var lost *sandbox.IncompleteError
	require.ErrorAs(t, err, &lost)
	require.ErrorContains(t, err, "mount /tmp (tmpfs)")
	require.ErrorContains(t, err, "(sleep)")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "--experimental")
	r, err := box.Execute(t.Context(), `read -p "x? " x`)
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, r.State)
	_, err = box.Snapshot(t.Context())
	require.ErrorIs(t, err, sandbox.ErrBusy)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
