package remotebox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/sandbox"
)

// An EnvBox is a sandbox to whose environment variables can be added.
type EnvBox interface {
	sandbox.Sandbox
	// AddEnv adds variables, "NAME=value", for what is started later.
	AddEnv(kv ...string)
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckEnv returns an error that names the first variable that HandOver cannot set: a running shell
// takes only names of letters, digits and "_". field is what the caller calls env.
func CheckEnv(field string, env []string) error {
	if err := environ.Check(field, env); err != nil {
		return err
	}
	for i, kv := range env {
		if n, _, _ := strings.Cut(kv, "="); !variableName.MatchString(n) {
			return fmt.Errorf("%s[%d]: the name %q may have only letters, digits and \"_\"",
				field, i, n)
		}
	}
	return nil
}

// handOverLimit bounds the command that sets the variables: a box that takes longer counts as dead.
// In a paused container even the killing of a command does not end, so Execute alone cannot keep
// the limit. killGrace is how long it may take to kill the command.
const (
	handOverLimit = 10 * time.Second
	killGrace     = 3 * time.Second
)

// HandOver gives a box that was made ahead to its user. It sets the variables, "NAME=value", in the
// main session and for all that is started later, and copies the files into the main session's
// directory, which it returns. If files is nil, it copies nothing. The main session must be at its
// prompt. If the box does not answer, the error is sandbox.ErrTimeout or sandbox.ErrLost. The
// caller must then remove the box, because the command may still run.
func HandOver(ctx context.Context, box EnvBox, env []string,
	files fs.FS) (dir string, err error) {
	if err := CheckEnv("Handover.Env", env); err != nil {
		return "", err
	}
	var exports strings.Builder
	exports.WriteString(":\n")
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&exports, "export %s=%s\n", name, shellquote.Quote(value))
	}
	res, err := executeWithin(ctx, box, handOverLimit, exports.String())
	if err != nil {
		if ctx.Err() != nil {
			return "", ctxerr.Of(ctx)
		}
		return "", fmt.Errorf("the main session does not answer: %w", withoutCommand(err))
	}
	if res.State != sandbox.Exited || res.ExitCode != 0 {
		return "", fmt.Errorf("set the variables: exit status %d: %s", res.ExitCode,
			lastlines.Of(res.Output))
	}
	if len(env) > 0 {
		box.AddEnv(env...)
	}
	if files == nil {
		return res.Cwd, nil
	}
	if err := copyFiles(ctx, box, files); err != nil {
		return "", fmt.Errorf("copy the files: %w", err)
	}
	return res.Cwd, nil
}

// executeWithin executes a command. It returns killGrace after the limit at the latest, even if
// Execute does not.
func executeWithin(ctx context.Context, box EnvBox, limit time.Duration,
	command string) (*sandbox.Result, error) {
	type outcome struct {
		res *sandbox.Result
		err error
	}
	done := make(chan outcome, 1)
	executing, cancel := context.WithTimeoutCause(ctx, limit, sandbox.ErrTimeout)
	defer cancel()
	go func() {
		res, err := box.Execute(executing, command)
		done <- outcome{res, err}
	}()
	select {
	case o := <-done:
		return o.res, o.err
	case <-executing.Done():
	}
	select {
	case o := <-done:
		if o.err == nil {
			return o.res, nil
		}
	case <-time.After(killGrace):
	}
	return nil, ctxerr.Of(executing)
}

// withoutCommand returns the error without Execute's text, which quotes the command and so the
// variables' values.
func withoutCommand(err error) error {
	var lost *sandbox.LostError
	if errors.As(err, &lost) {
		return lost
	}
	for _, known := range []error{sandbox.ErrTimeout, sandbox.ErrBusy, sandbox.ErrClosed} {
		if errors.Is(err, known) {
			return known
		}
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// copyFiles copies the files by way of a temporary directory on this machine.
func copyFiles(ctx context.Context, box sandbox.Sandbox, files fs.FS) error {
	dir, err := os.MkdirTemp("", "sandshell-files-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, files); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := box.CopyTo(ctx, filepath.Join(dir, e.Name()), "."); err != nil {
			return err
		}
	}
	return nil
}
