package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/sandbox"
)

// outputMax is how much of a setup's output an Error holds.
const outputMax = 4 << 20

// An installation is one call of Install.
type installation struct {
	box     sandbox.Sandbox
	machine machine
	common  []string // variables of every setup and check

	mu       sync.Mutex // held while variables change, here and in the main session
	env      []string   // variables of the plugins that are installed
	pathDirs []string   // directories that they have put at the front of PATH
}

func newInstallation(ctx context.Context, box sandbox.Sandbox) (*installation, error) {
	fail := func(err error) (*installation, error) {
		return nil, fmt.Errorf("prepare %s for plugins: %w", box, err)
	}
	// apply needs the main session. If it is busy, ErrBusy comes before anything is installed.
	if _, err := box.Execute(ctx, ":"); err != nil {
		return fail(err)
	}
	m, err := inspectMachine(ctx, box)
	if err != nil {
		return fail(err)
	}
	return &installation{box: box, machine: *m, common: []string{
		"SANDSHELL_BOX=" + box.String(), "SANDSHELL_ROOT=" + m.root,
		"SANDSHELL_PACKAGE_MANAGER=" + m.packageManager, "SANDSHELL_CACHE=" + m.cache,
		"DEBIAN_FRONTEND=noninteractive",
	}}, nil
}

// install installs p. The plugins that it requires are installed already.
func (in *installation) install(ctx context.Context, p Plugin) error {
	if p.Timeout == 0 {
		p.Timeout = defaultTimeout
	}
	if p.Output == nil {
		p.Output = io.Discard
	}
	p.Output = guard.Writer("Plugin.Output", p.Output)
	failed := &Error{Plugin: p.Name, Box: in.box.String(), ExitCode: -1}
	// Files is the caller's, and may panic.
	err := guard.Call("the setup", func() error { return in.tryInstall(ctx, p, failed) })
	if err == nil && failed.ExitCode <= 0 {
		return nil
	}
	failed.Err = err
	return failed
}

// tryInstall installs p, and records in failed how setup.sh ended.
func (in *installation) tryInstall(ctx context.Context, p Plugin, failed *Error) error {
	earlier, variables, err := in.earlierSetup(ctx, p)
	if err != nil {
		return err
	}
	digest, err := p.Digest()
	if err != nil {
		return err
	}
	// After an earlier setup with another Digest, setup.sh runs whatever Check says.
	if earlier == digest || earlier == "" && p.Check != "" {
		err := error(nil)
		if p.Check != "" {
			err = in.runCheck(ctx, p, variables)
		}
		switch {
		case err == nil:
			return in.apply(ctx, variables)
		case ctx.Err() != nil:
			return ctxerr.Of(ctx)
		case p.Files == nil:
			return fmt.Errorf("its check fails, and it has no Files to set it up with: %w", err)
		}
	}
	if in.machine.dir == "" {
		return errNoDirectory
	}
	dir := in.machine.dir + "/" + p.Name
	if err := in.setUp(ctx, p, dir, failed); err != nil || failed.ExitCode > 0 {
		return errors.Join(err, in.remove(p.Name))
	}
	variables, err = in.variables(ctx, p, dir)
	if err == nil && p.Check != "" {
		if err = in.runCheck(ctx, p, variables); err != nil {
			err = fmt.Errorf("setup.sh ended with 0, but the check fails: %w", err)
		}
	}
	if err == nil {
		_, err = in.run(ctx, `printf %s "$1" >"$0"`, dir+".installed", digest)
	}
	if err == nil {
		err = in.apply(ctx, variables)
	}
	if err != nil {
		return errors.Join(err, in.remove(p.Name))
	}
	return nil
}

// copyFiles copies the plugin's Files to dir, a directory of this program's machine.
func copyFiles(p Plugin, dir string) error {
	err := os.CopyFS(dir, p.Files)
	if err == nil {
		err = makeExecutable(dir)
	}
	if err != nil {
		return fmt.Errorf("read its Files: %w", err)
	}
	return nil
}

// makeExecutable makes the files below dir that begin with "#!" executable, and everything readable
// and writable for the owner.
func makeExecutable(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." || e.Type() == fs.ModeSymlink {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o600
		if e.IsDir() {
			mode |= 0o700
		} else if text, err := root.ReadFile(name); err != nil {
			return err
		} else if isScript(text) {
			mode |= 0o111
		}
		return root.Chmod(name, mode)
	})
}

func isScript(text []byte) bool { return bytes.HasPrefix(text, []byte("#!")) }

// setUp copies the plugin's files to dir and runs setup.sh there. failed gets the exit status and
// the output.
func (in *installation) setUp(ctx context.Context, p Plugin, dir string,
	failed *Error) (err error) {
	if err := in.remove(p.Name); err != nil {
		return err
	}
	if p.Files == nil {
		return nil
	}
	files, err := os.MkdirTemp("", "sandshell-plugin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(files) // in a defer, because Files may panic
	if err := copyFiles(p, files); err != nil {
		return err
	}
	if err := in.box.CopyTo(ctx, files, dir); err != nil {
		return err
	}
	env := append(in.environment(p, nil), "SANDSHELL_PLUGIN="+dir, "SANDSHELL_ENV="+dir+".env",
		"SANDSHELL_PATH="+dir+".path")
	if in.machine.root == "yes" && in.machine.packageManager == "apt-get" {
		apt, err := in.newApt(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, apt.close()) }()
		env = append(env, "APT_CONFIG="+apt.config())
	}
	s, err := in.box.Open(ctx, sandbox.Dir(dir), sandbox.Env(slices.Concat(in.common, env)...))
	if err != nil {
		return err
	}
	res, err := s.Execute(ctx, commandLine(p), sandbox.Timeout(p.Timeout), sandbox.Tee(p.Output),
		sandbox.MaxOutput(outputMax), sandbox.Patience(-1)) // setup.sh may read while it works
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	if res != nil {
		failed.Output, failed.Omitted = res.Output, res.Omitted
	}
	switch {
	case errors.Is(err, sandbox.ErrTimeout):
		return fmt.Errorf("setup.sh took longer than %v: %w", p.Timeout, err)
	case err != nil:
		return err
	case res.State == sandbox.Waiting:
		return errors.New("setup.sh asks for input, and nobody answers")
	case res.Restarted:
		return fmt.Errorf("setup.sh ended the shell that ran it, with exit status %d", res.ExitCode)
	}
	failed.ExitCode = res.ExitCode
	return nil
}

// commandLine returns a command that runs setup.sh under the interpreter of its first line. The
// kernel would do so too, but not on a file system that is mounted noexec, as Docker mounts tmpfs.
func commandLine(p Plugin) string {
	text, err := fs.ReadFile(p.Files, "setup.sh")
	line, _, _ := strings.Cut(string(text), "\n")
	line, ok := strings.CutPrefix(line, "#!")
	interpreter, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || !ok || interpreter == "" {
		return "sh ./setup.sh"
	}
	command := shellquote.Quote(interpreter)
	if argument = strings.TrimSpace(argument); argument != "" {
		command += " " + shellquote.Quote(argument)
	}
	return command + " ./setup.sh"
}

// environment returns the variables for p's setup or check: those of the installed plugins, those
// of p, and those of more.
func (in *installation) environment(p Plugin, more *variables) []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	env := slices.Concat(in.env, p.Env)
	dirs := in.pathDirs
	if more != nil {
		env = append(env, more.env...)
		dirs = slices.Concat(more.path, dirs)
	}
	return append(env, "PATH="+in.machine.pathWith(dirs))
}

// earlierSetup returns the Digest of the plugin's last setup in this box, by any program, and the
// plugin's variables. The Digest is "" if there was no setup.
func (in *installation) earlierSetup(ctx context.Context,
	p Plugin) (digest string, v *variables, err error) {
	const script = `n=$0; for d do if [ -f "$d/$n.installed" ]; then cat "$d/$n.installed"; printf ' %s' "$d/$n"; exit; fi; done`
	out, err := in.run(ctx, script, append([]string{p.Name}, in.machine.dirs...)...)
	digest, dir, ok := strings.Cut(out, " ")
	if err != nil || !ok {
		return "", &variables{env: environ.Merge(p.Env)}, err
	}
	v, err = in.variables(ctx, p, dir)
	return digest, v, err
}

// runCheck runs the plugin's Check.
func (in *installation) runCheck(ctx context.Context, p Plugin, v *variables) error {
	ctx, cancel := ctxerr.WithLimit(ctx, p.Timeout,
		fmt.Errorf("%q took longer than %v: %w", p.Check, p.Timeout, sandbox.ErrTimeout))
	defer cancel()
	var out lastlines.Writer
	code, err := in.box.Run(ctx, &sandbox.Cmd{
		Args: []string{"sh", "-c", p.Check}, Env: slices.Concat(in.common, in.environment(p, v)),
		Stdout: &out, Stderr: &out,
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("%q ended with exit status %d", p.Check, code)
		if text := out.String(); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
	}
	return err
}

// apply sets variables in the main session, and in everything that is started later.
func (in *installation) apply(ctx context.Context, v *variables) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(v.env) == 0 && len(v.path) == 0 {
		return nil
	}
	env, dirs := append(slices.Clone(in.env), v.env...), slices.Concat(v.path, in.pathDirs)
	added := slices.Clone(v.env)
	if len(v.path) > 0 {
		added = append(added, "PATH="+in.machine.pathWith(dirs))
	}
	res, err := in.box.Execute(ctx, v.exports(), sandbox.Timeout(time.Minute))
	if err != nil {
		return fmt.Errorf("set its variables in the main session: %w", err)
	}
	if res.State != sandbox.Exited || res.ExitCode != 0 {
		return fmt.Errorf("set its variables in the main session: exit status %d: %s",
			res.ExitCode, lastlines.Of(res.Output))
	}
	if box, ok := sandbox.As[Environment](in.box); ok {
		box.AddEnv(added...)
	}
	in.env, in.pathDirs = env, dirs
	return nil
}

// remove removes the plugin's directory, and the files beside it, from the box.
func (in *installation) remove(name string) error {
	return in.cleanUp(`chmod -R u+rwx "$0" 2>/dev/null; rm -rf "$0" "$0.env" "$0.path" "$0.installed"`,
		path.Join(in.machine.dir, name))
}

// cleanUp runs one of this package's scripts, even if the caller's ctx has ended.
func (in *installation) cleanUp(script string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := in.run(ctx, script, args...)
	return err
}

// run runs one of this package's scripts and returns its standard output.
func (in *installation) run(ctx context.Context, script string, args ...string) (string, error) {
	return runScript(ctx, in.box, script, args...)
}

// scriptMax is the most output of a script that is read. The longest one has the environment of a
// process in it.
const scriptMax = 4 << 20

func runScript(ctx context.Context, box sandbox.Sandbox, script string,
	args ...string) (string, error) {
	ctx, out, stop := bounded.Capture(ctx, "what the box's sh prints", scriptMax)
	defer stop()
	var errs lastlines.Writer
	code, err := box.Run(ctx, &sandbox.Cmd{Args: append([]string{"sh", "-c", script}, args...),
		Stdout: out, Stderr: &errs})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit status %d: %s", code, errs.String())
	}
	return out.String(), err
}
