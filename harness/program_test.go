package harness

import (
	"os/exec"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// A program of another language does a task by MCP, and is judged as any agent.
func TestProgram(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("this machine has no python3: install it: ", err)
	}
	for _, c := range []struct {
		how    string
		short  bool
		status Status
		says   string // in the reason
	}{
		{"right", false, Pass, ""},
		{"wrong", false, Fail, "check: exit status 1"},
		{"asking", false, Stuck, "waited for an answer"},
		{"crashing", false, Error, "exit status 1: it is task\nno idea"},
		{"killed", false, Error, "signal: killed"},
		{"silent", true, Timeout, "the agent had not returned after 4s"},
		{"hanging", true, Timeout, "the agent had not returned after 4s"},
		{"malformed", false, Pass, ""},
		{"leaving", false, Fail, "check: exit status 1"},
		{"ending", false, Fail, "lost"},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			task := small("task")
			if c.short {
				task.Limits.Time = 4 * time.Second
			}
			r := runOne(t, task, Program(python, "testdata/agents/client.py", c.how),
				Config{Retries: -1})
			require.Equal(t, c.status, r.Status, "%+v\n%s", r, logOf(t, r))
			require.Contains(t, r.Reason, c.says)
			if !c.short { // a busy machine may not have come so far
				require.Contains(t, logOf(t, r), "it is task")
			}
		})
	}
	// No task is to blame for a program that there is not: the Run ends.
	for says, agent := range map[string]Agent{
		"/no/such/program": Program("/no/such/program"), "it has no name": Program(),
	} {
		dir := t.TempDir()
		s, err := Run(t.Context(), Config{Tasks: []Task{small("task")}, Agent: agent,
			Name: "agent", Dir: dir})
		require.ErrorContains(t, err, says)
		require.Empty(t, s.Results)
	}
}
