package kubebox

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/harness"
	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

var tasks = flag.Int("kubebox.tasks", 0, "run TestScaleHarness with so many tasks; in make "+
	"nightly it is 1000")

// TestScaleHarness runs an evaluation in pods on three nodes, of tasks that take a second each,
// while the API server is killed and started, and later a node is killed. All tasks pass, and no
// box is left. docs/scale.md has the figures that it logs.
func TestScaleHarness(t *testing.T) {
	n := *tasks
	if n == 0 {
		testenv.NeedsFull(t, "it takes a quarter of an hour; TestHarness has an evaluation of all "+
			"kinds of tasks, and TestLost and TestServerRestarted what is killed here")
		n = 1000
	}
	k := kubetest.Start(t, 3, 10*time.Second)
	c := Cluster{Kubeconfig: k.Kubeconfig, Namespace: k.Namespace(t, kubetest.Restricted)}
	evaluate := func(n, parallel int, progress func(done int)) *harness.Summary {
		var list []harness.Task
		for i := range n {
			list = append(list, harness.Task{ID: fmt.Sprintf("task-%04d", i),
				Image: "sandshell-busybox", Instruction: "Make the file done.", Dir: "/tmp/task",
				Solution: harness.Script{Command: "sleep 1; touch done"},
				Check:    harness.Check{Script: harness.Script{Command: "test -e done"}}})
		}
		busy, began := processorTime(t), time.Now()
		s, err := harness.Run(t.Context(), harness.Config{Tasks: list, Agent: harness.Oracle,
			Name: "oracle", Dir: t.TempDir(), Parallel: parallel, Ahead: parallel,
			Place:    Place{Config: Config{Cluster: c}},
			Defaults: harness.Limits{Memory: 64 << 20, CPUs: 0.05},
			Progress: &doneWriter{told: progress}})
		require.NoError(t, err)
		took := time.Since(began).Seconds()
		var times harness.Times
		again := 0
		for _, r := range s.Results {
			require.Equal(t, harness.Pass, r.Status, "%+v", r)
			times.Box += r.Times.Box / float64(n)
			times.Setup += r.Times.Setup / float64(n)
			times.Agent += r.Times.Agent / float64(n)
			times.Check += r.Times.Check / float64(n)
			again += r.Attempts - 1
		}
		t.Logf("%d tasks, %d at a time, in %.0f s: %.2f a second; a task waited %.1f s for its "+
			"box, setup %.1f s, agent %.1f s, check %.1f s; %d tried again; the machine's "+
			"processors were busy for %.2f s a task, the harness for %.2f", n, parallel, took,
			float64(n)/took, times.Box, times.Setup, times.Agent, times.Check, again,
			(processorTime(t).all-busy.all)/float64(n), (processorTime(t).own-busy.own)/float64(n))
		return s
	}
	for _, parallel := range []int{4, 16, 64} {
		evaluate(min(n, 2*parallel+20), parallel, func(int) {})
	}
	evaluate(n, 32, func(done int) {
		switch done {
		case n / 3:
			k.Order(t, "kill", "apiserver")
			k.Order(t, "start", "apiserver")
			t.Logf("the API server was killed after %d tasks", done)
		case 2 * n / 3:
			k.Order(t, "kill", "node3")
			t.Logf("a node was killed after %d tasks", done)
		}
	})
	left, err := c.List(context.Background())
	require.NoError(t, err)
	for _, b := range left { // nobody can end what was on the node
		require.Equal(t, "node3", b.Node, "%+v", b)
	}
}

// A doneWriter tells of each line of a harness's progress how many tasks are done.
type doneWriter struct {
	told func(done int)
	rest []byte
}

func (w *doneWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		w.rest = rest
		number, _, _ := strings.Cut(string(line), "/")
		if done, err := strconv.Atoi(number); err == nil {
			w.told(done)
		}
	}
}

// A processors is the time in seconds for which the machine's processors were busy, and that of
// this program: /proc/stat and /proc/self/stat of proc(5), in hundredths of seconds.
type processors struct{ all, own float64 }

func processorTime(t *testing.T) (p processors) {
	t.Helper()
	fields := func(name, after string) []float64 {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(text), after)
		line, _, _ := strings.Cut(rest, "\n")
		var list []float64
		for _, f := range strings.Fields(line) {
			n, _ := strconv.ParseFloat(f, 64)
			list = append(list, n/100)
		}
		return list
	}
	all := fields("/proc/stat", "cpu ") // user, nice, system, idle, iowait, irq, softirq
	p.all = all[0] + all[1] + all[2] + all[5] + all[6]
	own := fields("/proc/self/stat", ") ") // from the third field on; 14 and 15 are user, system
	p.own = own[11] + own[12]
	return p
}
