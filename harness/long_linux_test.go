package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/enginetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestLongEvaluation runs 500 tasks, eight at a time, with all kinds of agents, on an engine of its
// own. The harness is killed twice, and the engine restarts once, which ends its containers. Each
// task gets one result, with the status of its kind of agent. The harness does not grow, and no
// container is left.
func TestLongEvaluation(t *testing.T) {
	testenv.NeedsFull(t, "it makes 500 containers on an engine of its own; TestKilled has five "+
		"tasks, and TestJudge the agents")
	const count, each = 500, 25
	machine, err := dockertest.Engine(t).Info(t.Context(), client.InfoOptions{})
	require.NoError(t, err)
	e := enginetest.Start(t, enginetest.Config{
		Images: []string{dockertest.Busybox, dockertest.Image},
		Flags:  []string{"--storage-driver", machine.Info.Driver}})
	names := slices.Sorted(maps.Keys(longKinds))
	dir := t.TempDir()
	var tasks []Task
	for i := range count {
		kind := names[i%len(names)]
		task := small(fmt.Sprintf("%s/%03d", kind, i))
		if change := longKinds[kind].change; change != nil {
			change(&task)
		}
		tasks = append(tasks, task)
	}
	data, err := json.Marshal(tasks)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks.json"), data, 0o644))

	on := "DOCKER_HOST=" + e.Host()
	began := time.Now()
	for _, n := range []int{150, 300} {
		startHarness(t, dir, n, (*os.Process).Kill, on)
	}
	out := startHarness(t, dir, 400, func(*os.Process) error {
		e.Restart(t, time.Second)
		return nil
	}, on)
	t.Logf("%d tasks took %v", count, time.Since(began).Round(time.Second))

	seen := map[string]bool{}
	again := 0
	for _, r := range resultsIn(t, dir) {
		require.False(t, seen[r.Task], "%s is there twice", r.Task)
		seen[r.Task] = true
		if r.Attempts > 1 {
			again++
		}
		kind, _, _ := strings.Cut(r.Task, "/")
		log, _ := os.ReadFile(filepath.Join(dir, "results", r.Log))
		if r.Status != longKinds[kind].status {
			t.Errorf("%s: %s: %s\n%s", r.Task, r.Status, r.Reason, log)
		}
	}
	require.Len(t, seen, count)
	t.Logf("%d of them were tried again", again)
	e.WantEmpty(t)

	var heaps []int
	for _, m := range heapLine.FindAllStringSubmatch(out, -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		heaps = append(heaps, n)
	}
	require.Greater(t, len(heaps), 100)
	early, late := sum(heaps[each:2*each])/each, sum(heaps[len(heaps)-each:])/each
	t.Logf("the harness's objects: %d KiB after %d agents, %d KiB at the end", early, each, late)
	require.Less(t, late-early, 4<<10, "KiB: %v", heaps)
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

var heapLine = regexp.MustCompile(`(?m)^objects (\d+) KiB$`)
