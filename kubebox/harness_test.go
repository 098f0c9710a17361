package kubebox

import (
	"testing"

	"github.com/sandshell/sandshell/harness"
	"github.com/sandshell/sandshell/internal/test/harnesstest"
)

// TestHarness runs the evaluation of TestKinds of package harness in pods.
func TestHarness(t *testing.T) {
	t.Parallel()
	harnesstest.Kinds(t, harnesstest.Place{Place: Place{Config: Config{Cluster: cluster(t)}},
		Image: "sandshell-busybox", Dir: "/tmp/tasks",
		Defaults: harness.Limits{Memory: 64 << 20, CPUs: 0.2}})
}
