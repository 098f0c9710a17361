package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// killedDir names a variable. If it is set, the test binary runs the tasks of tasks.json in that
// directory, with results below it.
const killedDir = "SANDSHELL_HARNESS_DIR"

const killedParallel = 8

// samplesFile is a file in that directory with the number of samples. Default: 1.
const samplesFile = "samples"

// runToBeKilled runs the tasks of a directory. To standard output it writes a line when an agent
// begins, and the progress.
func runToBeKilled(dir string) int {
	var tasks []Task
	data, err := os.ReadFile(filepath.Join(dir, "tasks.json"))
	if err == nil {
		err = json.Unmarshal(data, &tasks)
	}
	samples := 1
	if text, err := os.ReadFile(filepath.Join(dir, samplesFile)); err == nil {
		samples, _ = strconv.Atoi(string(text))
	}
	fmt.Println("process", os.Getpid())
	if err == nil {
		var s *Summary
		s, err = Run(context.Background(), Config{
			Tasks: tasks, Dir: filepath.Join(dir, "results"), Name: "counts",
			Parallel: killedParallel, Progress: os.Stdout, Samples: samples,
			Agent: func(ctx context.Context, trial *Trial) error {
				fmt.Println("agent", trial.Task.ID)
				kind, _, _ := strings.Cut(trial.Task.ID, "/")
				if k, ok := longKinds[kind]; ok {
					showMemory()
					return k.agent(ctx, trial)
				}
				return Oracle(ctx, trial)
			},
		})
		if err == nil {
			err = s.WriteTable(os.Stdout)
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// showMemory prints what this program's objects take after a collection.
func showMemory() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println("objects", m.HeapAlloc>>10, "KiB")
}

// TestKilled kills a harness and runs it again. In the end each task has one result, and no box is
// left.
func TestKilled(t *testing.T) {
	t.Parallel()
	killed(t, 5, []int{2})
}

func TestKilledOften(t *testing.T) {
	testenv.NeedsFull(t,
		"it makes hundreds of boxes; TestKilled has 5 tasks and one kill every day")
	killed(t, 200, []int{40, 120})
}

// killed runs count tasks. It kills the harness each time that there are as many results as an
// element of kills says.
func killed(t *testing.T, count int, kills []int) {
	dockertest.Engine(t, dockertest.Busybox)
	dir := t.TempDir()
	var tasks []Task
	for i := range count {
		tasks = append(tasks, small(fmt.Sprintf("task-%03d", i)))
	}
	data, err := json.Marshal(tasks)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks.json"), data, 0o644))
	for _, n := range kills {
		out := startHarness(t, dir, n, (*os.Process).Kill)
		require.Contains(t, out, fmt.Sprintf("%d/%d pass", n, count))
	}
	// A machine that loses power may leave half a line.
	f, err := os.OpenFile(filepath.Join(dir, "results", resultsFile), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"task":"task-`)
	require.NoError(t, errors.Join(err, f.Close()))
	before := len(resultsIn(t, dir))

	out := startHarness(t, dir, 0, nil)
	require.Contains(t, out, fmt.Sprintf("%d pass of %d tasks", count, count))
	require.Equal(t, count-before, strings.Count(out, "agent task-"),
		"what has a result has been run again, or not all of the rest")
	results := resultsIn(t, dir)
	require.Len(t, results, count)
	seen := map[string]bool{}
	for _, r := range results {
		require.Equal(t, Pass, r.Status, "%+v", r)
		require.False(t, seen[r.Task], "%s is there twice", r.Task)
		seen[r.Task] = true
	}
	var run struct{ ID string }
	data, err = os.ReadFile(filepath.Join(dir, "results", runFile))
	require.NoError(t, errors.Join(err, json.Unmarshal(data, &run)))
	boxes, err := sshbox.Engine{}.List(t.Context())
	require.NoError(t, err)
	for _, b := range boxes {
		require.NotEqual(t, run.ID, b.Labels[runLabel], "a box is left: %+v", b)
	}
	require.FileExists(t, filepath.Join(dir, "results", reportFile))
}

// startHarness runs a harness in a process of its own, and calls f at the nth result. It returns
// what the harness printed.
func startHarness(t *testing.T, dir string, n int, f func(*os.Process) error,
	env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harnessLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(append(os.Environ(), killedDir+"="+dir), env...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var out bytes.Buffer
	nth := fmt.Sprint(n) + "/"
	for lines := bufio.NewScanner(io.TeeReader(stdout, &out)); lines.Scan(); {
		if f != nil && strings.HasPrefix(lines.Text(), nth) {
			require.NoError(t, f(cmd.Process))
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if ctx.Err() == nil && errors.As(err, &exit) &&
		exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return out.String()
	}
	require.NoError(t, err, "%s", &out)
	return out.String()
}

// harnessLimit bounds a run. Hundreds of tasks take minutes.
const harnessLimit = 30 * time.Minute

// resultsIn reads the results of a directory, without half a line at the end.
func resultsIn(t *testing.T, dir string) []Result {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "results", resultsFile))
	require.NoError(t, err)
	var results []Result
	for line := range strings.Lines(string(data)) {
		if strings.HasSuffix(line, "\n") {
			var r Result
			require.NoError(t, json.Unmarshal([]byte(line), &r), line)
			results = append(results, r)
		}
	}
	return results
}
