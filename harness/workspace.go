package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/sandbox"
)

// A workspace is a box and the directory in it where a task's scripts start.
type workspace struct {
	sandbox.Sandbox
	dir string   // absolute
	env []string // of all scripts, before their own
}

// pathMax bounds a path that comes from a box, in bytes. It is Linux's PATH_MAX.
const pathMax = 4096

// openWorkspace finds out in which directory of a box the task's scripts start.
func openWorkspace(ctx context.Context, box sandbox.Sandbox, t *Task) (*workspace, error) {
	if t.Dir != "" {
		return &workspace{Sandbox: box, dir: t.Dir}, nil
	}
	ctx, out, stop := bounded.Capture(ctx, "the output of pwd", pathMax)
	defer stop()
	_, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "pwd"}, Stdout: out})
	if err != nil {
		return nil, err
	}
	dir := strings.TrimSuffix(out.String(), "\n")
	if !path.IsAbs(dir) {
		return nil, fmt.Errorf("find the box's directory: pwd printed %.100q, no absolute path",
			dir)
	}
	return &workspace{Sandbox: box, dir: dir}, nil
}

// abs returns a path in the box.
func (w *workspace) abs(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(w.dir, name)
}

// putFiles puts files into the box. No program of the box takes part.
func (w *workspace) putFiles(ctx context.Context, files []File) error {
	for _, f := range files {
		if err := w.putFile(ctx, f); err != nil {
			return fmt.Errorf("put %s into the box: %w", f.To, err)
		}
	}
	return nil
}

func (w *workspace) putFile(ctx context.Context, f File) error {
	to := w.abs(f.To)
	if f.From == "" {
		return w.writeText(ctx, to, f)
	}
	info, err := os.Stat(f.From)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := w.Files().MkdirAll(ctx, path.Dir(to), 0o755); err != nil {
			return err
		}
		return w.CopyTo(ctx, f.From, to)
	}
	if err := w.Files().MkdirAll(ctx, to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.From)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.CopyTo(ctx, filepath.Join(f.From, e.Name()), to); err != nil {
			return err
		}
	}
	return nil
}

// writeText writes f.Text to a file. It replaces a symbolic link, not the file that the link leads
// to.
func (w *workspace) writeText(ctx context.Context, to string, f File) error {
	files := w.Files()
	if err := files.Remove(ctx, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	perm := cmp.Or(f.Mode, 0o644)
	return files.WriteFile(ctx, to, []byte(f.Text), perm, sandbox.Parents())
}

// systemPath is the PATH of a check. Only root can write to its directories.
const systemPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// forCheck returns the workspace for the check's script. If the agent is another user, PATH is
// systemPath or the task's own. The agent may be able to write to directories in the image's PATH.
func (w *workspace) forCheck(t *Task) *workspace {
	if t.AgentUser == "" {
		return w
	}
	env := []string{systemPath}
	for _, kv := range t.Env {
		if strings.HasPrefix(kv, "PATH=") {
			env = append(env, kv)
		}
	}
	return &workspace{w.Sandbox, w.dir, env}
}

// A scriptResult says how a script ended.
type scriptResult struct {
	code     int    // the exit status
	oom      bool   // the kernel killed a process because memory was used up
	lastLine string // of the output
}

// err returns an error if the exit status is not 0.
func (e scriptResult) err() error {
	switch {
	case e.code == 0:
		return nil
	case e.oom:
		return fmt.Errorf("exit status %d, when memory was used up%s", e.code,
			withPrefix(": ", e.lastLine))
	}
	return fmt.Errorf("exit status %d%s", e.code, withPrefix(": ", e.lastLine))
}

// script runs a script of the task, and writes its output to log.
func (w *workspace) script(ctx context.Context, s Script, log io.Writer) (scriptResult, error) {
	if err := w.putFiles(ctx, s.Files); err != nil {
		return scriptResult{code: -1}, err
	}
	var e scriptResult
	var tail lastlines.Writer
	out := io.MultiWriter(log, &tail)
	var err error
	e.code, err = w.Run(ctx, &sandbox.Cmd{
		Args: []string{"sh", "-c", s.Command}, Dir: w.dir, Env: slices.Concat(w.env, s.Env),
		Stdout: out, Stderr: out, OOM: &e.oom,
	})
	if errors.Is(err, exec.ErrWaitDelay) { // a script may leave a server that holds its output
		err = nil
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, sandbox.ErrLost) {
		err = ctxerr.Of(ctx)
	}
	lines := strings.Split(tail.String(), "\n")
	e.lastLine = lines[len(lines)-1]
	return e, err
}
