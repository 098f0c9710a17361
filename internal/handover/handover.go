// Package handover gives a box that was made for anybody to somebody: with the environment and the
// files that are theirs.
package handover

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

// A Box is a sandbox to which variables can be added.
type Box interface {
	sandbox.Sandbox
	AddEnv(kv ...string)
}

var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Check says which variable cannot be set: a running shell takes only names of letters, digits and
// "_".
func Check(env []string) error {
	if err := environ.Check(env); err != nil {
		return err
	}
	for _, kv := range env {
		if n, _, _ := strings.Cut(kv, "="); !name.MatchString(n) {
			return fmt.Errorf("environment %q: a name has to be of letters, digits and \"_\"", n)
		}
	}
	return nil
}

// limit bounds the command that sets the variables: a box that takes longer does not answer. A
// container that somebody has paused keeps even the killing of a command from ending, so the limit
// is not left to Execute; grace is what that may take.
const (
	limit = 10 * time.Second
	grace = 3 * time.Second
)

// To sets the variables, "NAME=value", in the main session and for all that is started later, and
// copies the files into the main session's directory, which it returns. The main session has to be
// at its prompt. If the box does not answer, the error is sandbox.ErrTimeout or ErrLost; the box is
// to be removed then, so that the command ends.
func To(ctx context.Context, box Box, env []string, files fs.FS) (dir string, err error) {
	if err := Check(env); err != nil {
		return "", err
	}
	var exports strings.Builder
	exports.WriteString(":\n")
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&exports, "export %s=%s\n", name, shellquote.Quote(value))
	}
	res, err := execute(ctx, box, exports.String())
	if err != nil {
		if ctx.Err() != nil {
			return "", ctxerr.Of(ctx)
		}
		return "", fmt.Errorf("the main session does not answer: %w", unquoted(err))
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
	if err := copyTo(ctx, box, files); err != nil {
		return "", fmt.Errorf("copy the files: %w", err)
	}
	return res.Cwd, nil
}

// execute executes a command. It returns though Execute does not.
func execute(ctx context.Context, box Box, command string) (*sandbox.Result, error) {
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
	case <-time.After(grace):
	}
	return nil, ctxerr.Of(executing)
}

// unquoted returns the error without Execute's words, which have the command in them, and so the
// values.
func unquoted(err error) error {
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

// copyTo copies the files by way of a directory of this machine.
func copyTo(ctx context.Context, box sandbox.Sandbox, files fs.FS) error {
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
