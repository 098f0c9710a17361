package harness

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"go.uber.org/goleak"
)

// TestMain checks that the tests leave no goroutine and no container behind. In a process that
// TestKilled starts, it runs a harness.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killedDir); dir != "" {
		os.Exit(runToBeKilled(dir))
	}
	status := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
	defer cancel()
	// An error means that there is no engine.
	if names, err := dockertest.Containers(ctx); err == nil && len(names) > 0 {
		fmt.Fprintln(os.Stderr, "containers left behind:", names)
		status = 1
	}
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}
