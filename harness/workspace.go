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

// pathMax bounds a path that a box tells: Linux has none that is longer.
const pathMax = 4096

// openWorkspace finds out in which directory of a box the task's scripts start.
func openWorkspace(ctx context.Context, box sandbox.Sandbox, t *Task) (*workspace, error) {
	if t.Dir != "" {
		return &workspace{Sandbox: box, dir: t.Dir}, nil
	}
	ctx, out, stop := bounded.Capture(ctx, "what pwd says", pathMax)
	defer stop()
	_, err := box.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "pwd"}, Stdout: out})
	if err != nil {
		return nil, err
	}
	dir := strings.TrimSuffix(out.String(), "\n")
	if !path.IsAbs(dir) {
		return nil, fmt.Errorf("the box does not tell its directory: pwd says %.100q", dir)
	}
	return &workspace{Sandbox: box, dir: dir}, nil
}

// abs returns a path in the box.
func (p *workspace) abs(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(p.dir, name)
}

// put puts files into the box. No program of the box takes part in that.
func (p *workspace) put(ctx context.Context, files []File) error {
	for _, f := range files {
		if err := p.putOne(ctx, f); err != nil {
			return fmt.Errorf("put %s into the box: %w", f.To, err)
		}
	}
	return nil
}

func (p *workspace) putOne(ctx context.Context, f File) error {
	to := p.abs(f.To)
	if f.From == "" {
		return p.putText(ctx, to, f)
	}
	info, err := os.Stat(f.From)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := p.Files().MkdirAll(ctx, path.Dir(to), 0o755); err != nil {
			return err
		}
		return p.CopyTo(ctx, f.From, to)
	}
	if err := p.Files().MkdirAll(ctx, to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.From)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := p.CopyTo(ctx, filepath.Join(f.From, e.Name()), to); err != nil {
			return err
		}
	}
	return nil
}

// putText writes f.Text to a file. It replaces a symbolic link, not the file that the link leads
// to.
func (p *workspace) putText(ctx context.Context, to string, f File) error {
	files := p.Files()
	if err := files.Remove(ctx, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	perm := cmp.Or(f.Mode, 0o644)
	return files.WriteFile(ctx, to, []byte(f.Text), perm, sandbox.Parents())
}

// systemPath is the PATH of a check. Only root may write to its directories.
const systemPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// checked returns the place as the check gets it. If the agent is another user, programs come from
// directories of the system, or from where the task says: not from those that the image's PATH
// names and the agent can perhaps write to.
func (p *workspace) forCheck(t *Task) *workspace {
	if t.AgentUser == "" {
		return p
	}
	env := []string{systemPath}
	for _, kv := range t.Env {
		if strings.HasPrefix(kv, "PATH=") {
			env = append(env, kv)
		}
	}
	return &workspace{p.Sandbox, p.dir, env}
}

// An ended script has this exit status. OOM says whether the kernel killed for memory meanwhile.
type scriptResult struct {
	code int
	oom  bool
	said string // its last line, if it has not gone well
}

// err says what has not gone well.
func (e scriptResult) err() error {
	switch {
	case e.code == 0:
		return nil
	case e.oom:
		return fmt.Errorf("exit status %d, when memory was used up%s", e.code, after(": ", e.said))
	}
	return fmt.Errorf("exit status %d%s", e.code, after(": ", e.said))
}

// script runs a script of the task, and writes its output to log.
func (p *workspace) script(ctx context.Context, s Script, log io.Writer) (scriptResult, error) {
	if err := p.put(ctx, s.Files); err != nil {
		return scriptResult{code: -1}, err
	}
	var e scriptResult
	var said lastlines.Writer
	out := io.MultiWriter(log, &said)
	var err error
	e.code, err = p.Run(ctx, &sandbox.Cmd{
		Args: []string{"sh", "-c", s.Command}, Dir: p.dir, Env: slices.Concat(p.env, s.Env),
		Stdout: out, Stderr: out, OOM: &e.oom,
	})
	if errors.Is(err, exec.ErrWaitDelay) { // it has left a server behind, which is as good as any
		err = nil
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, sandbox.ErrLost) {
		err = ctxerr.Of(ctx)
	}
	lines := strings.Split(said.String(), "\n")
	e.said = lines[len(lines)-1]
	return e, err
}
