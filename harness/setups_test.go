package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// drawn returns a task whose setup draws a number, which the check prints. An agent that finds
// traces of another sample does not pass.
func drawn(id string) Task {
	t := small(id)
	t.Setup = "mkdir -p made && cat /proc/sys/kernel/random/uuid >made/drawn"
	t.Check.Command = `[ "$(cat made/file)" = done ] && [ ! -e made/twice ]`
	t.Solution.Command = "cp work/wanted made/file"
	t.Collect = []string{"made/drawn"}
	return t
}

const solveDrawn = "[ ! -e made/file ] || touch made/twice; cp work/wanted made/file"

// runDrawn runs samples of a task that drawn has returned. It returns the results, and what was
// drawn in each sample.
func runDrawn(t *testing.T, c Config) (results []Result, numbers []string, logs []string) {
	t.Helper()
	c.Name, c.Retries = "agent", 1
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	if c.Agent == nil {
		c.Agent = typing(solveDrawn)
	}
	s, err := Run(t.Context(), c)
	require.NoError(t, err)
	for _, r := range s.Results {
		log, err := os.ReadFile(filepath.Join(c.Dir, filepath.FromSlash(r.Log)))
		require.NoError(t, err)
		require.Equal(t, Pass, r.Status, "%+v\n%s", r, log)
		number, err := os.ReadFile(filepath.Join(c.Dir, filepath.FromSlash(r.Dir), filesDir,
			"made/drawn"))
		require.NoError(t, err)
		numbers, logs = append(numbers, string(number)), append(logs, string(log))
	}
	return s.Results, numbers, logs
}

// setupsIn returns how many logs say that the setup ran.
func setupsIn(logs []string) (n int) {
	for _, log := range logs {
		n += strings.Count(log, "--- setup\n")
	}
	return n
}

// snapshotsOf returns the ids of the temporary snapshots of a process.
func snapshotsOf(t *testing.T, pid int) (ids []string) {
	t.Helper()
	list, err := dockertest.Engine(t).ImageList(t.Context(), client.ImageListOptions{
		Filters: client.Filters{}.Add("label", "sandshell.temporary=true").
			Add("label", fmt.Sprint("sandshell.pid=", pid))})
	require.NoError(t, err)
	for _, i := range list.Items {
		ids = append(ids, i.ID)
	}
	return ids
}

// A snapshotting place counts what samples share.
type snapshotting struct {
	sshbox.Place
	made, removed chan string
}

func newSnapshotting() snapshotting {
	return snapshotting{made: make(chan string, 100), removed: make(chan string, 100)}
}

func (p snapshotting) Snapshot(ctx context.Context, box sandbox.Sandbox) (string, error) {
	id, err := p.Place.Snapshot(ctx, box)
	if err == nil {
		p.made <- id
	}
	return id, err
}

func (p snapshotting) RemoveSnapshot(ctx context.Context, id string) error {
	err := p.Place.RemoveSnapshot(ctx, id)
	if err == nil {
		p.removed <- id
	}
	return err
}

// gone checks that the place has made n snapshots, and that they are gone.
func (p snapshotting) gone(t *testing.T, n int) {
	t.Helper()
	require.Len(t, p.made, n)
	require.Len(t, p.removed, n)
	for range n {
		id := <-p.made
		list, err := dockertest.Engine(t).ImageList(t.Context(), client.ImageListOptions{
			Filters: client.Filters{}.Add("reference", id)})
		require.NoError(t, err)
		require.Empty(t, list.Items)
	}
}

// TestSharedSetup runs the setup once for all samples, their retries and the reference solution.
func TestSharedSetup(t *testing.T) {
	t.Parallel()
	d := dockertest.Engine(t, dockertest.Busybox)
	task, alone := drawn("task"), drawn("alone")
	alone.Setup, alone.Files = "", append(alone.Files, File{To: "made/drawn", Text: "-"})
	task.Dir = "/srv"
	like := drawn("like")
	like.Check = Check{Like: []string{"made"}}
	place := newSnapshotting()
	lost := make(chan bool, 1)
	lost <- true
	results, numbers, logs := runDrawn(t, Config{Tasks: []Task{task, like, alone}, Samples: 3,
		Parallel: 3, Place: place, Agent: func(ctx context.Context, trial *Trial) error {
			if trial.Task.ID == "task" && trial.Sample == 2 {
				select {
				case <-lost: // the first attempt
					box, _ := sandbox.As[*sshbox.DockerSSHBox](trial.Box)
					_, err := d.ContainerRemove(ctx, box.ContainerID(),
						client.ContainerRemoveOptions{Force: true})
					if err != nil {
						return err
					}
				default:
				}
			}
			return typing(solveDrawn)(ctx, trial)
		}})
	require.Equal(t, 2, results[1].Attempts)
	for _, of := range [][]string{numbers[:3], numbers[3:6]} {
		require.NotEmpty(t, of[0])
		require.Equal(t, []string{of[0], of[0], of[0]}, of)
	}
	require.Equal(t, 1, setupsIn(logs[:3]))
	require.Equal(t, 1, setupsIn(logs[3:6]), "the reference solution shares it too")
	require.Equal(t, 0, setupsIn(logs[6:]))
	all := strings.Join(logs, "")
	require.Equal(t, 2, strings.Count(all, "--- the other samples begin with a snapshot of this"))
	require.Equal(t, 3+3, strings.Count(all, "--- begin with the files and the setup of another"))
	place.gone(t, 2)
}

// TestSetupOfEach has samples that cannot share the setup: each runs it, and the log says why.
func TestSetupOfEach(t *testing.T) {
	t.Parallel()
	d := dockertest.Engine(t, dockertest.Busybox)
	serving := drawn("serving")
	serving.Setup += "; sleep 1000 >/dev/null 2>&1 &"
	place := newSnapshotting()
	_, numbers, logs := runDrawn(t, Config{Tasks: []Task{serving}, Samples: 3, Place: place})
	require.NotEqual(t, numbers[0], numbers[1])
	require.Equal(t, 3, setupsIn(logs))
	require.Regexp(t, `--- each sample runs the setup, because a snapshot is not possible: .*`+
		`would be lost: program`, strings.Join(logs, ""))
	place.gone(t, 0)

	here := drawn("here")
	here.Image, here.Limits = "", Limits{}
	_, numbers, logs = runDrawn(t, Config{Tasks: []Task{here}, Samples: 3,
		Place: localbox.Place{}})
	require.NotEqual(t, numbers[0], numbers[1])
	require.Equal(t, 3, setupsIn(logs))
	require.Equal(t, 1, strings.Count(strings.Join(logs, ""),
		"--- each sample runs the setup, because this machine makes no snapshots\n"))

	// One sample needs no snapshot, and somebody removes that of others.
	_, _, logs = runDrawn(t, Config{Tasks: []Task{drawn("one")}, Place: place})
	require.NotContains(t, logs[0], "snapshot")
	place.gone(t, 0)
	_, numbers, logs = runDrawn(t, Config{Tasks: []Task{drawn("pruned")}, Samples: 3,
		Place: place, Parallel: 1, Ahead: -1, Agent: func(ctx context.Context, trial *Trial) error {
			if trial.Sample == 1 {
				_, err := d.ImageRemove(ctx, <-place.made, client.ImageRemoveOptions{Force: true})
				if err != nil {
					return err
				}
			}
			return typing(solveDrawn)(ctx, trial)
		}})
	require.NotEqual(t, numbers[0], numbers[1])
	require.Equal(t, 3, setupsIn(logs), "the last one makes a snapshot for nobody")
	require.Contains(t, logs[1], "--- the setup runs again, because a box of its snapshot is not "+
		"possible: ")
}

// TestSharedSetupEgress shares a setup that has fetched something: each sample has a way out of
// its own.
func TestSharedSetupEgress(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.Host)
	}))
	defer s.Close()
	task := drawn("task")
	task.Limits.Egress = []string{"http://*.example.com"}
	task.Setup += "; wget -qO made/set http://a.example.com"
	task.Check.Command += " && grep a.example.com made/set && grep b.example.com made/got"
	place := newSnapshotting()
	_, numbers, logs := runDrawn(t, Config{Tasks: []Task{task}, Samples: 3, Place: place,
		Agent: typing(solveDrawn + "; wget -qO made/got http://b.example.com"),
		Egress: func(_ Task, c *egress.Config) error {
			c.Allow[0].To = s.Listener.Addr().String()
			return nil
		}})
	require.Equal(t, []string{numbers[0], numbers[0], numbers[0]}, numbers)
	require.Equal(t, 1, setupsIn(logs))
	place.gone(t, 1)
}

// TestSharedSetupCancelled ends a run in the middle, and goes on with it.
func TestSharedSetupCancelled(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	dir, place := t.TempDir(), newSnapshotting()
	ctx, cancel := context.WithCancel(t.Context())
	c := Config{Tasks: []Task{drawn("task")}, Samples: 4, Parallel: 1, Dir: dir, Name: "agent",
		Place: place, Agent: func(ctx context.Context, trial *Trial) error {
			if trial.Sample == 2 {
				cancel()
			}
			return typing(solveDrawn)(ctx, trial)
		}}
	_, err := Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	place.gone(t, 1)
	<-place.removed
	_, numbers, logs := runDrawn(t, Config{Tasks: c.Tasks, Samples: 4, Dir: dir, Place: place})
	require.NotEqual(t, numbers[0], numbers[1])
	require.Equal(t, []string{numbers[1], numbers[1], numbers[1]}, numbers[1:])
	require.Equal(t, 1, setupsIn(logs[1:]))
	place.gone(t, 1)
}

// TestKilledSamples kills a harness whose samples share a setup, and runs it again. No snapshot is
// left.
func TestKilledSamples(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	dir := t.TempDir()
	data, err := json.Marshal([]Task{drawn("task")})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks.json"), data, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, samplesFile), []byte("12"), 0o644))
	out := startHarness(t, dir, 2, (*os.Process).Kill)
	var killed int
	_, err = fmt.Sscanf(out, "process %d\n", &killed)
	require.NoError(t, err, out)
	require.NotEmpty(t, snapshotsOf(t, killed))
	before := len(resultsIn(t, dir))
	out = startHarness(t, dir, 0, nil)
	require.Contains(t, out, "12 pass of 12 samples of 1 task")
	results := resultsIn(t, dir)
	require.Len(t, results, 12)
	setups := 0
	for _, r := range results[before:] {
		log, err := os.ReadFile(filepath.Join(dir, "results", filepath.FromSlash(r.Log)))
		require.NoError(t, err)
		setups += setupsIn([]string{string(log)})
	}
	require.Equal(t, 1, setups)
	for end := time.Now().Add(testenv.Limit); len(snapshotsOf(t, killed)) > 0; {
		// A box of it may have been removed after the harness has looked.
		require.True(t, time.Now().Before(end), "a snapshot is left")
		_, err := sshbox.Engine{}.Reap(t.Context())
		require.NoError(t, err)
	}
	_, err = fmt.Sscanf(out, "process %d\n", &killed)
	require.NoError(t, errors.Join(err))
	require.Empty(t, snapshotsOf(t, killed))
}
