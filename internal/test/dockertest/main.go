package dockertest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"go.uber.org/goleak"
)

// Main is a TestMain that checks that the tests have left no goroutine and no container behind.
func Main(m *testing.M) {
	status := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
	defer cancel()
	if names, err := Containers(ctx); err == nil && len(names) > 0 { // an error: there is no engine
		fmt.Fprintln(os.Stderr, "containers left behind:", names)
		status = 1
	}
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}
