package harness

import (
	"io/fs"
	"os/exec"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// TestProgram has a Python program do a task by MCP, in each way in which it can end.
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
		counts map[string]float64
	}{
		{"right", false, Pass, "", map[string]float64{"tokens": 1500, "steps": 1}},
		{"wrong", false, Fail, "check: exit status 1", nil},
		{"asking", false, Stuck, "waited for an answer", nil},
		{"crashing", false, Error, "exit status 1: it is task\nno idea", nil},
		{"killed", false, Error, "signal: killed", map[string]float64{"tokens": 7}},
		{"silent", true, Timeout, "the agent had not returned after 4s", nil},
		{"hanging", true, Timeout, "the agent had not returned after 4s", nil},
		{"malformed", false, Pass, "", nil},
		{"miscounting", false, Error, "HARNESS_NUMBERS: line 2: it is no JSON object",
			map[string]float64{"tokens": 7}},
		{"leaving", false, Fail, "check: exit status 1", nil},
		{"ending", false, Fail, "lost", nil},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			task := small("task")
			if c.short {
				task.Limits.Time = 4 * time.Second
			}
			agent, err := Program(python, "testdata/agents/client.py", c.how)
			require.NoError(t, err)
			r := runOne(t, task, agent, Config{Retries: -1})
			require.Equal(t, c.status, r.Status, "%+v\n%s", r, logOf(t, r))
			require.Contains(t, r.Reason, c.says)
			require.Equal(t, c.counts, r.Counts)
			if !c.short { // on a busy machine, a short one may not get so far
				require.Contains(t, logOf(t, r), "it is task")
			}
		})
	}
	_, err = Program("/no/such/program")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Program()
	require.ErrorContains(t, err, "it has no name")
}
