package harness

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
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
	for n := range len(whole) { // wherever a line was cut off
		require.NoError(t, os.WriteFile(path, whole[:n], 0o644))
		again, err := openResults(dir, "a")
		require.NoError(t, err)
		_, first := again.of("1")
		_, second := again.of("2")
		require.False(t, second)
		require.NoError(t, again.add(Result{Task: "3"}))
		require.NoError(t, again.close())
		again, err = openResults(dir, "a")
		require.NoError(t, err)
		_, third := again.of("3")
		require.True(t, third)
		require.Len(t, again.done, map[bool]int{true: 2, false: 1}[first])
		require.NoError(t, again.close())
	}

	// What was lost to the infrastructure is run again, and its line replaced.
	r, err = openResults(dir, "a")
	require.NoError(t, err)
	require.NoError(t, r.add(Result{Task: "4", Status: Lost}))
	require.NoError(t, r.add(Result{Task: "5", Status: Pass}))
	require.NoError(t, r.close())
	r, err = openResults(dir, "a")
	require.NoError(t, err)
	_, lost := r.of("4")
	_, after := r.of("5")
	require.True(t, !lost && after)
	require.NoError(t, r.add(Result{Task: "4", Status: Pass}))
	require.NoError(t, r.close())
	r, err = openResults(dir, "a")
	require.NoError(t, err)
	require.Equal(t, Pass, r.done["4"].Status)
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

// A result counts for the task that has got it: if that has changed, nothing is run unless its
// result is to be dropped.
func TestChanged(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	dir, given := t.TempDir(), t.TempDir()
	file := filepath.Join(given, "wanted")
	require.NoError(t, os.WriteFile(file, []byte("done\n"), 0o644))
	first, second := small("first"), small("second")
	first.Check.Files = []File{{To: "wanted", From: file}}
	second.Check.Command = "exit 1"
	run := func(again ...string) (ran []string, text string, err error) {
		s, err := Run(t.Context(), Config{
			Tasks: []Task{first, second}, Name: "agent", Dir: dir, Again: again, Parallel: 1,
			Agent: func(ctx context.Context, box sandbox.Sandbox, task Task) error {
				ran = append(ran, task.ID)
				return Oracle(ctx, box, task)
			},
		})
		if s != nil {
			text = s.Text()
			require.NotEmpty(t, s.Results[0].Digest)
			require.NotEmpty(t, s.Results[0].Image)
			require.Empty(t, s.Results[0].Recording, "the solution is no command of a session")
		}
		return ran, text, err
	}
	ran, text, err := run()
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, ran)
	require.Equal(t, "1 pass, 1 fail of 2 tasks", text)

	require.NoError(t, os.WriteFile(file, []byte("dome\n"), 0o644))
	ran, _, err = run()
	require.ErrorIs(t, err, ErrChanged)
	require.ErrorContains(t, err, "task first has changed since its result, pass")
	require.Empty(t, ran)
	ran, text, err = run(Changed)
	require.NoError(t, err)
	require.Equal(t, []string{"first"}, ran)
	require.Equal(t, "2 fail of 2 tasks", text)
	ran, _, err = run("second")
	require.NoError(t, err)
	require.Equal(t, []string{"second"}, ran)
	ran, _, err = run("error")
	require.NoError(t, err)
	require.Empty(t, ran)
	_, _, err = run("secnd")
	require.ErrorContains(t, err,
		`Config.Again: "secnd" is neither a task nor a status: there are pass, fail,`)
	data, err := os.ReadFile(filepath.Join(dir, resultsFile))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(data), "\n"))
}

// What Run cannot do it says once, and before it makes a box.
func TestRunWrong(t *testing.T) {
	t.Parallel()
	away, err := client.New(client.WithHost("unix:///nonexistent.sock"))
	require.NoError(t, err)
	defer away.Close()
	o := Config{Tasks: []Task{small("task")}, Agent: Nop, Name: "agent", Dir: t.TempDir()}
	for says, change := range map[string]func(*Config){
		"harness: Config.Name: ":   func(o *Config) { o.Name = "" },
		"harness: Config.Tasks: ":  func(o *Config) { o.Tasks = nil },
		"harness: Config.Agent: ":  func(o *Config) { o.Agent = nil },
		"harness: Config.Dir: ":    func(o *Config) { o.Dir = "" },
		"no Docker engine answers": func(o *Config) { o.Box.Docker = away },
	} {
		o := o
		change(&o)
		s, err := Run(t.Context(), o)
		require.ErrorContains(t, err, says)
		require.Nil(t, s)
		require.Equal(t, 1, strings.Count(err.Error(), says), err)
	}
	require.ErrorContains(t, FindProgram("nosuch"), `exec: "nosuch": executable file not found`)
	require.Error(t, FindProgram())
}

// What is under way when ctx ends has no result, and is run the next time.
func TestCancelled(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := Config{Tasks: []Task{small("first"), small("second"), small("third")}, Dir: t.TempDir(),
		Name: "agent", Parallel: 1}
	o.Agent = func(agentCtx context.Context, box sandbox.Sandbox, task Task) error {
		if task.ID == "second" {
			cancel()
		}
		return Oracle(agentCtx, box, task)
	}
	s, err := Run(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, s.Results, 1)
	require.Equal(t, "1 pass of 3 tasks", s.Text())

	var ran []string
	o.Agent = func(ctx context.Context, box sandbox.Sandbox, task Task) error {
		ran = append(ran, task.ID)
		return Oracle(ctx, box, task)
	}
	s, err = Run(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, []string{"second", "third"}, ran)
	require.Equal(t, "3 pass of 3 tasks", s.Text())
}

// A room holds what fits, in order.
func TestRoom(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := newRoom(3, 100, 1)
	half := Limits{Memory: 50, CPUs: 0.1}
	require.True(t, r.take(ctx, half))
	require.True(t, r.take(ctx, half))
	r.give(half) // else the next would wait
	require.True(t, r.take(ctx, Limits{Memory: 10, CPUs: 0.9}))
	r.give(half)
	require.True(t, r.take(ctx, Limits{Memory: 90, CPUs: 0.1}))
	cancel()
	require.False(t, r.take(ctx, half))
}
