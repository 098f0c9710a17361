package harness_test

import (
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/harnesstest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sshbox"
)

// TestKinds runs the kinds of tasks that other people's evaluations have, in containers and on this
// machine. Package kubebox runs the same in pods.
func TestKinds(t *testing.T) {
	testenv.NeedsAll(t, "it makes fifty boxes; TestPlaces has some of the kinds")
	t.Parallel()
	t.Run("containers", func(t *testing.T) {
		t.Parallel()
		dockertest.Engine(t, dockertest.Busybox)
		harnesstest.Kinds(t, harnesstest.Place{Place: sshbox.Place{}, Image: dockertest.Busybox,
			Dir: "/tmp/tasks"})
	})
	t.Run("here", func(t *testing.T) {
		t.Parallel()
		harnesstest.Kinds(t, harnesstest.Place{Place: localbox.Place{}})
	})
}
