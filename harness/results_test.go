package harness

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

func TestResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := openResults(dir, "a")
	require.NoError(t, err)
	_, err = openResults(dir, "a")
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, r.add(Result{Task: "1", Status: Pass}))
	require.NoError(t, r.add(Result{Task: "2", Status: Fail, Reason: "two\nlines"}))
	require.NoError(t, r.close())
	_, err = openResults(dir, "b")
	require.ErrorContains(t, err, `holds results of the agent "a", not of "b"`)

	path := filepath.Join(dir, resultsFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for n := range len(whole) { // a line may be cut off anywhere
		require.NoError(t, os.WriteFile(path, whole[:n], 0o644))
		again, err := openResults(dir, "a")
		require.NoError(t, err)
		_, first := again.get(sampleID{"1", 0})
		_, second := again.get(sampleID{"2", 0})
		require.False(t, second)
		require.NoError(t, again.add(Result{Task: "3"}))
		require.NoError(t, again.close())
		again, err = openResults(dir, "a")
		require.NoError(t, err)
		_, third := again.get(sampleID{"3", 0})
		require.True(t, third)
		require.Len(t, again.done, map[bool]int{true: 2, false: 1}[first])
		require.NoError(t, again.close())
	}

	// A task that is Lost is run again, and its line is replaced.
	r, err = openResults(dir, "a")
	require.NoError(t, err)
	require.NoError(t, r.add(Result{Task: "4", Status: Lost}))
	require.NoError(t, r.add(Result{Task: "5", Status: Pass}))
	require.NoError(t, r.close())
	r, err = openResults(dir, "a")
	require.NoError(t, err)
	_, lost := r.get(sampleID{"4", 0})
	_, after := r.get(sampleID{"5", 0})
	require.True(t, !lost && after)
	require.NoError(t, r.add(Result{Task: "4", Status: Pass}))
	require.NoError(t, r.close())
	r, err = openResults(dir, "a")
	require.NoError(t, err)
	require.Equal(t, Pass, r.done[sampleID{"4", 0}].Status)
	require.NoError(t, r.close())

	for lines, says := range map[string]string{
		"{}\nnonsense\n":                       "results.jsonl:2: it is no result",
		"{\"task\":\"1\"}\n{\"task\":\"1\"}\n": "results.jsonl:2: field task: a second result",
	} {
		require.NoError(t, os.WriteFile(path, []byte(lines), 0o644))
		_, err = openResults(dir, "a")
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, runFile), []byte("nonsense"), 0o644))
	_, err = openResults(dir, "a")
	require.ErrorContains(t, err, "sandshell did not write it")
}

// TestChanged changes a task that has a result. Run then runs it again, and the table says so.
// Config.Again names other results to drop.
func TestChanged(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	dir, given := t.TempDir(), t.TempDir()
	file := filepath.Join(given, "wanted")
	require.NoError(t, os.WriteFile(file, []byte("done\n"), 0o644))
	first, second := small("first"), small("second")
	first.Check.Files = []File{{To: "wanted", From: file}}
	second.Check.Command = "exit 1"
	var table bytes.Buffer
	run := func(again ...string) (ran []string, s *Summary, err error) {
		table.Reset()
		s, err = Run(t.Context(), Config{
			Tasks: []Task{first, second}, Name: "agent", Dir: dir, Again: again, Parallel: 1,
			Agent: func(ctx context.Context, trial *Trial) error {
				ran = append(ran, trial.Task.ID)
				return Oracle(ctx, trial)
			},
		})
		if s != nil {
			require.NoError(t, s.WriteTable(&table))
			require.NotEmpty(t, s.Results[0].Digest)
			require.NotEmpty(t, s.Results[0].Image)
			require.Empty(t, s.Results[0].Recording, "the solution is no command of a session")
		}
		return ran, s, err
	}
	ran, s, err := run()
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, ran)
	require.Equal(t, "1 pass, 1 fail of 2 tasks", s.Text())

	first.Tags = []string{"new"} // which say nothing of what the task is
	ran, s, err = run()
	require.NoError(t, err)
	require.Empty(t, ran)
	require.Equal(t, first.Tags, s.Results[0].Tags)

	require.NoError(t, os.WriteFile(file, []byte("dome\n"), 0o644))
	ran, s, err = run()
	require.NoError(t, err)
	require.Equal(t, []string{"first"}, ran)
	require.Equal(t, "2 fail of 2 tasks", s.Text())
	require.Equal(t, Pass, s.Results[0].Before)
	require.Contains(t, table.String(), "fail (changed, was pass)")
	ran, _, err = run("first", "error")
	require.NoError(t, err)
	require.Equal(t, []string{"first"}, ran)
	require.NotContains(t, table.String(), "changed")
	ran, _, err = run("fail")
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, ran)
	_, _, err = run("secnd")
	require.ErrorContains(t, err,
		`Config.Again: "secnd" is neither a task nor a status: name a task, or pass, fail,`)
	data, err := os.ReadFile(filepath.Join(dir, resultsFile))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(data), "\n"))
}

// TestRunWrong checks that the error of a wrong Config comes before a box is made, and says its
// text once.
func TestRunWrong(t *testing.T) {
	t.Parallel()
	away, err := client.New(client.WithHost("unix:///nonexistent.sock"))
	require.NoError(t, err)
	defer away.Close()
	for says, change := range map[string]func(*Config){
		"harness: Config.Name: ":  func(o *Config) { o.Name = "" },
		"harness: Config.Tasks: ": func(o *Config) { o.Tasks = nil },
		`harness: Config.Tasks: two tasks have the ID "TASK": rename one`: func(o *Config) {
			o.Tasks = []Task{small("task"), small("TASK")}
		},
		`harness: task "task": files[0].from: lstat /none: `: func(o *Config) {
			o.Tasks[0].Files = []File{{To: "x", From: "/none"}}
		},
		`harness: task "task": build.dir: lstat /none: `: func(o *Config) {
			o.Tasks[0].Image, o.Tasks[0].Build = "", &Build{Dir: "/none"}
		},
		`harness: Config.Tasks[0]: "task": field env[0]: "FOO" has no "="`: func(o *Config) {
			o.Tasks[0].Env = []string{"FOO"}
		},
		"harness: Config.Place: sshbox: Place.Config.Memory: -1 is negative": func(o *Config) {
			o.Place = sshbox.Place{Config: sshbox.Config{Memory: -1}}
		},
		`harness: Config.Tasks[0]: "task": field image: it is missing`: func(o *Config) {
			o.Tasks[0].Image = ""
		},
		`harness: Config.Tasks[0]: "task": localbox: Task.Image: a LocalBox is this`: func(o *Config) {
			o.Place = localbox.Place{}
		},
		`"task": field build: this machine builds no images: name an image`: func(o *Config) {
			o.Tasks[0].Image, o.Tasks[0].Build = "", &Build{Dir: "."}
			o.Place = localbox.Place{}
		},
		`"task": localbox: Task.Limits.Memory: a LocalBox isolates nothing`: func(o *Config) {
			o.Tasks[0].Image, o.Defaults.Memory = "", 1<<30
			o.Place = localbox.Place{}
		},
		"harness: Config.Dir: results_test.go is a file: name a directory": func(o *Config) {
			o.Dir = "results_test.go"
		},
		"harness: Config.Agent: ": func(o *Config) { o.Agent = nil },
		"harness: Config.Dir: ":   func(o *Config) { o.Dir = "" },
		"no Docker engine answers": func(o *Config) {
			o.Place = sshbox.Place{Config: sshbox.Config{Docker: away}}
		},
	} {
		o := Config{Tasks: []Task{small("task")}, Agent: Nop, Name: "agent", Dir: t.TempDir()}
		change(&o)
		s, err := Run(t.Context(), o)
		require.ErrorContains(t, err, says)
		require.Nil(t, s)
		require.Equal(t, 1, strings.Count(err.Error(), says), err)
	}
}

// TestCancelled ends ctx during a task. The task has no result, and the next Run runs it.
func TestCancelled(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := Config{Tasks: []Task{small("first"), small("second"), small("third")}, Dir: t.TempDir(),
		Name: "agent", Parallel: 1}
	o.Agent = func(agentCtx context.Context, trial *Trial) error {
		if trial.Task.ID == "second" {
			cancel()
		}
		return Oracle(agentCtx, trial)
	}
	s, err := Run(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, s.Results, 1)
	require.Equal(t, "1 pass of 3 tasks", s.Text())

	var ran []string
	o.Agent = func(ctx context.Context, trial *Trial) error {
		ran = append(ran, trial.Task.ID)
		return Oracle(ctx, trial)
	}
	s, err = Run(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, []string{"second", "third"}, ran)
	require.Equal(t, "3 pass of 3 tasks", s.Text())
}

// TestCapacity checks that tasks that fit are let in, in order.
func TestCapacity(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := newCapacity(3, 100, 1)
	half := Limits{Memory: 50, CPUs: 0.1}
	require.True(t, r.acquire(ctx, half))
	require.True(t, r.acquire(ctx, half))
	r.release(half) // without it, the next acquire would wait
	require.True(t, r.acquire(ctx, Limits{Memory: 10, CPUs: 0.9}))
	r.release(half)
	require.True(t, r.acquire(ctx, Limits{Memory: 90, CPUs: 0.1}))
	cancel()
	require.False(t, r.acquire(ctx, half))
}
