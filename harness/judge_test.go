package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// small returns a task in the small image: to write "done" into a file.
func small(id string) Task {
	return Task{
		ID: id, Image: dockertest.Busybox, Files: []File{{To: "work/wanted", Text: "done\n"}},
		Setup: "mkdir -p made", Instruction: "Copy work/wanted to made/file.",
		Limits: Limits{Time: 2 * time.Minute, Memory: 64 << 20, PIDs: 64, CPUs: 0.5,
			Network: "none"},
		Check: Check{Script: Script{Command: "cmp made/file wanted || exit 1",
			Files: []File{{To: "wanted", Text: "done\n"}}}},
		Solution: Script{Command: "cp work/wanted made/file"},
	}
}

// typing returns an agent that executes a command, and answers no question.
func typing(command string) Agent { return Scripted([]string{command}, nil) }

// A judgement says how a task should end for an agent.
type judgement struct {
	name   string
	agent  Agent
	change func(*Task)
	status Status
	reason string
}

func short(task *Task) { task.Limits.Time = 2 * time.Second }

func judge(t *testing.T, cases []judgement) {
	dockertest.Engine(t, dockertest.Busybox)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			task := small("task")
			if c.change != nil {
				c.change(&task)
			}
			r := runOne(t, task, c.agent, Config{Retries: -1,
				Place: sshbox.Place{Config: sshbox.Config{Pull: sshbox.PullNever}}})
			require.Equal(t, c.status, r.Status, "%+v\n%s", r, logOf(t, r))
			require.Contains(t, r.Reason, c.reason)
			require.Equal(t, 1, r.Attempts)
			require.Equal(t, len(task.Check.Like) > 0, r.Times.Reference > 0)
		})
	}
}

// TestJudge has an agent for each status, and for each way to get it.
func TestJudge(t *testing.T) {
	judge(t, []judgement{
		{name: "right", agent: Oracle, status: Pass},
		{name: "nothing", agent: Nop, status: Fail, reason: "check: exit status 1"},
		{name: "wrong", agent: typing("echo dome >made/file"), status: Fail,
			reason: "check: exit status 1"},
		{name: "hanging", agent: typing("sleep 1000"), change: short, status: Timeout,
			reason: "the agent had not returned after 2s"},
		{name: "asking", agent: typing("rm -i work/wanted"), status: Stuck,
			reason: "nobody answers"},
		{name: "asking, and goes on", agent: asks, status: Stuck,
			reason: "a command waited for an answer"},
		{name: "failing", agent: func(context.Context, *Trial) error {
			return errors.New("no idea")
		}, status: Error, reason: "no idea"},
		{name: "crashing", agent: func(context.Context, *Trial) error {
			panic("oh")
		}, status: Error, reason: "the agent panicked: oh"},
		{name: "ending its goroutine", agent: func(context.Context, *Trial) error {
			runtime.Goexit()
			return nil
		}, status: Error,
			reason: "the agent has ended its goroutine"},
		{name: "forking", agent: typing("b() { b | b & }; b"), status: Fail},
		{name: "eating memory", agent: typing("tail /dev/zero"), status: OOM,
			reason: "memory was used up"},
		{name: "ending the box", agent: typing("kill -TERM 1; sleep 100"), status: Fail,
			reason: "lost"},
		{name: "check hangs", agent: Oracle, change: func(task *Task) {
			task.Check.Command, task.Check.Time = "sleep 1000", time.Second
		}, status: Fail, reason: "it had not ended after 1s"},
		{name: "setup hangs", agent: Oracle, change: func(task *Task) {
			task.Setup, task.Limits.Setup = "sleep 1000", time.Second
		},
			status: Broken, reason: "it took longer than 1s"},
		{name: "solution hangs", agent: Nop, change: func(task *Task) {
			task.Solution.Command, task.Check.Like, task.Limits.Time = "sleep 1000",
				[]string{"made"}, time.Second
		}, status: Broken, reason: "the reference solution: it took longer than 1s"},
		{name: "solution's own status", agent: Oracle, change: func(task *Task) {
			task.Check = Check{Like: []string{"made"}}
			task.Solution.Command = "ln -s /x made/link; grep no work/wanted >made/file"
		}, status: Pass},
		{name: "setup fails", agent: Oracle, change: func(task *Task) {
			task.Setup = "exit 3"
		}, status: Broken, reason: "setup: exit status 3"},
		{name: "no such image", agent: Oracle, change: func(task *Task) {
			task.Image = "sandshell-none:1"
		}, status: Broken, reason: "sandshell-none:1"},
		{name: "no such user", agent: Oracle, change: func(task *Task) {
			task.User = "nope"
		}, status: Broken, reason: "Task.User: the name is not in /etc/passwd"},
		{name: "no such agent's user", agent: Oracle, change: func(task *Task) {
			task.AgentUser = "nope"
		}, status: Broken, reason: "the agent's user: "},
	})
}

// TestJudgeAlike has agents that are much like one in TestJudge.
func TestJudgeAlike(t *testing.T) {
	testenv.NeedsAll(t, "TestJudge has every status")
	judge(t, []judgement{
		{name: "right by hand", agent: typing("cp work/wanted made/file"), status: Pass},
		{name: "right and noisy", agent: typing("yes | head -n 100000; cp work/wanted made/file"),
			status: Pass},
		{name: "hanging outside", agent: func(ctx context.Context, _ *Trial) error {
			<-ctx.Done()
			return ctx.Err()
		}, change: short, status: Timeout},
		{name: "says nothing of its time", agent: func(ctx context.Context, _ *Trial) error {
			<-ctx.Done()
			return nil
		}, change: short, status: Timeout},
		{name: "asking, and leaves", agent: leaves, status: Stuck,
			reason: "a command waited for an answer"},
		{name: "asking, and waits", agent: func(ctx context.Context, trial *Trial) error {
			_, err := trial.Box.Execute(ctx, "rm -i work/wanted")
			<-ctx.Done()
			return err
			// 10 s, because a busy machine takes seconds to the question.
		}, change: func(task *Task) { task.Limits.Time = 10 * time.Second }, status: Stuck},
		{name: "asking when all is done", agent: func(ctx context.Context, trial *Trial) error {
			_, err := trial.Box.Execute(ctx, "cp work/wanted made/file; rm -i work/wanted")
			return err
		}, status: Pass},
		{name: "eating memory, and done", agent: typing("cp work/wanted made/file; tail /dev/zero"),
			status: Pass},
		{name: "check eats memory", agent: Oracle, change: func(task *Task) {
			task.Check.Command = "tail /dev/zero"
		}, status: OOM},
		{name: "check sees a server", agent: typing("cp work/wanted made/file; sleep 1000 & " +
			"until pidof sleep; do :; done"), change: func(task *Task) {
			task.Check.Command = "pidof sleep"
		}, status: Pass},
		{name: "no such network", agent: Oracle, change: func(task *Task) {
			task.Limits.Network = "sandshell-none"
		}, status: Broken, reason: "Task.Limits.Network: there is no such network"},
		{name: "no solution", agent: Oracle, change: func(task *Task) {
			task.Solution = Script{}
		}, status: Broken, reason: ErrNoSolution.Error()},
	})
}

// asks is an agent that executes a second command though the first one asks.
func asks(ctx context.Context, trial *Trial) error {
	if _, err := trial.Box.Execute(ctx, "rm -i work/wanted"); err != nil {
		return err
	}
	_, err := trial.Box.Execute(ctx, "cp work/wanted made/file")
	return err
}

// leaves is an agent that returns while its command asks.
func leaves(ctx context.Context, trial *Trial) error {
	_, err := trial.Box.Execute(ctx, "rm -i work/wanted")
	return err
}

// TestLost removes boxes under an agent. That is the infrastructure's fault, so the task is tried
// again, as often as Config.Retries says.
func TestLost(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	for _, c := range []struct {
		name           string
		lost, retries  int
		status         Status
		attempts, runs int
	}{
		{"once", 1, 2, Pass, 2, 2},
		{"always", 100, 1, Lost, 2, 2},
		{"never again", 100, -1, Lost, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			r := runOne(t, small("task"), func(ctx context.Context, trial *Trial) error {
				if int(calls.Add(1)) > c.lost {
					return Oracle(ctx, trial)
				}
				container, _ := sandbox.As[*sshbox.DockerSSHBox](trial.Box)
				if err := (sshbox.Engine{}).Remove(ctx, container.ContainerID()); err != nil {
					return err
				}
				_, err := trial.Box.Execute(ctx, "true")
				return err
			}, Config{Retries: c.retries})
			require.Equal(t, c.status, r.Status, "%+v", r)
			require.Equal(t, c.attempts, r.Attempts)
			require.EqualValues(t, c.runs, calls.Load())
		})
	}
}

// runOne runs one task with an agent.
func runOne(t *testing.T, task Task, agent Agent, o Config) testResult {
	t.Helper()
	o.Tasks, o.Agent, o.Name, o.Dir = []Task{task}, agent, "agent", t.TempDir()
	s, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, s.Results, 1)
	return testResult{s.Results[0], o.Dir}
}

// A testResult is a Result with the directory that it is in.
type testResult struct {
	Result
	dir string
}

func logOf(t *testing.T, r testResult) string {
	data, err := os.ReadFile(filepath.Join(r.dir, r.Log))
	require.NoError(t, err)
	return string(data)
}

// removeBuilt builds a task's image, which is removed at the end of the test.
func removeBuilt(t *testing.T, d *client.Client, task Task) {
	t.Helper()
	name, err := sshbox.Engine{}.BuildImage(t.Context(), sshbox.Build{Dir: task.Build.Dir})
	require.NoError(t, err)
	dockertest.RemoveImage(t, d, name)
}
