package sshbox

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// tell executes a command that succeeds, and returns what it prints.
func tell(t testing.TB, box sandbox.Session, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	r, err := box.Execute(ctx, command)
	if err != nil || r.State != sandbox.Exited || r.ExitCode != 0 {
		t.Fatalf("%s: %+v, %v", command, r, err)
	}
	return strings.TrimSuffix(r.Output, "\n")
}
