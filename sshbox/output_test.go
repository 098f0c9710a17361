package sshbox

import (
	"context"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// output executes a command that must succeed, and returns what it prints, without the last
// newline.
func output(t testing.TB, box sandbox.Session, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testenv.Limit)
	defer cancel()
	r, err := box.Execute(ctx, command)
	if err != nil || r.State != sandbox.Exited || r.ExitCode != 0 {
		t.Fatalf("%s: %+v, %v", command, r, err)
	}
	return strings.TrimSuffix(r.Output, "\n")
}
