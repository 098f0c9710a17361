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
	place   place
	ambient []string // variables that each setup and check gets

	mu       sync.Mutex // held while variables change, here and in the main session
	inForce  []string
	pathDirs []string
}

func newInstallation(ctx context.Context, box sandbox.Sandbox) (*installation, error) {
	fail := func(err error) (*installation, error) {
		return nil, fmt.Errorf("prepare %s for plugins: %w", box, err)
	}
	// ErrBusy comes now: in the end the main session takes the variables
	if _, err := box.Execute(ctx, ":"); err != nil {
		return fail(err)
	}
	place, err := findPlace(ctx, box)
	if err != nil {
		return fail(err)
	}
	return &installation{box: box, place: *place, ambient: []string{
		"SANDSHELL_BOX=" + box.String(), "SANDSHELL_ROOT=" + place.root,
		"SANDSHELL_PACKAGE_MANAGER=" + place.packageManager, "SANDSHELL_CACHE=" + place.cache,
		"DEBIAN_FRONTEND=noninteractive",
	}}, nil
}

// plugin installs one plugin. Those that it requires are there.
func (in *installation) plugin(ctx context.Context, p Plugin) error {
	if p.Timeout == 0 {
		p.Timeout = timeout
	}
	if p.Output == nil {
		p.Output = io.Discard
	}
	p.Output = guard.Writer("Plugin.Output", p.Output)
	failed := &Error{Plugin: p.Name, Box: in.box.String(), ExitCode: -1}
	err := guard.Call("the setup", func() error { return in.try(ctx, p, failed) }) // of Files
	if err == nil && failed.ExitCode <= 0 {
		return nil
	}
	failed.Err = err
	return failed
}

// try installs p, and records in failed how setup.sh ended.
func (in *installation) try(ctx context.Context, p Plugin, failed *Error) error {
	there, variables, err := in.before(ctx, p)
	if err != nil {
		return err
	}
	hash, err := p.Digest()
	if err != nil {
		return err
	}
	if there == hash || there == "" && p.Check != "" { // with other files it is set up anew
		err := error(nil)
		if p.Check != "" {
			err = in.check(ctx, p, variables)
		}
		switch {
		case err == nil:
			return in.enforce(ctx, variables)
		case ctx.Err() != nil:
			return ctxerr.Of(ctx)
		case p.Files == nil:
			return fmt.Errorf("there are no Files to set it up with, and its check fails: %w", err)
		}
	}
	if in.place.dir == "" {
		return errNoPlace
	}
	dir := in.place.dir + "/" + p.Name
	if err := in.setUp(ctx, p, dir, failed); err != nil || failed.ExitCode > 0 {
		return errors.Join(err, in.remove(p.Name))
	}
	variables, err = in.variables(ctx, p, dir)
	if err == nil && p.Check != "" {
		if err = in.check(ctx, p, variables); err != nil {
			err = fmt.Errorf("setup.sh ended with 0, but the check fails: %w", err)
		}
	}
	if err == nil {
		_, err = in.run(ctx, `printf %s "$1" >"$0"`, dir+".installed", hash)
	}
	if err == nil {
		err = in.enforce(ctx, variables)
	}
	if err != nil {
		return errors.Join(err, in.remove(p.Name))
	}
	return nil
}

// copyFiles writes the plugin's Files to dir, a directory of this machine.
func copyFiles(p Plugin, dir string) error {
	err := os.CopyFS(dir, p.Files)
	if err == nil {
		err = makeExecutable(dir)
	}
	if err != nil {
		return fmt.Errorf("copy its Files: %w", err)
	}
	return nil
}

// makeExecutable makes files below dir executable if they begin with "#!", and lets the owner read
// and write everything.
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

// setUp copies the files and runs setup.sh.
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
	defer os.RemoveAll(files) // of Files that panic, too
	if err := copyFiles(p, files); err != nil {
		return err
	}
	if err := in.box.CopyTo(ctx, files, dir); err != nil {
		return err
	}
	env := append(in.environment(p, nil), "SANDSHELL_PLUGIN="+dir, "SANDSHELL_ENV="+dir+".env",
		"SANDSHELL_PATH="+dir+".path")
	if in.place.root == "yes" && in.place.packageManager == "apt-get" {
		apt, err := in.apt(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, apt.close()) }()
		env = append(env, "APT_CONFIG="+apt.config())
	}
	s, err := in.box.Open(ctx, sandbox.Dir(dir), sandbox.Env(slices.Concat(in.ambient, env)...))
	if err != nil {
		return err
	}
	res, err := s.Execute(ctx, commandLine(p), sandbox.Timeout(p.Timeout), sandbox.Tee(p.Output),
		sandbox.MaxOutput(outputMax))
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
		return errors.New("setup.sh asks for input, and there is nobody to answer")
	case res.Restarted:
		return fmt.Errorf("setup.sh ended the shell that ran it, with exit status %d", res.ExitCode)
	}
	failed.ExitCode = res.ExitCode
	return nil
}

// commandLine returns a command that runs setup.sh under its interpreter, as the kernel would. The
// kernel itself refuses on a file system that is mounted noexec, as Docker mounts tmpfs.
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

// environment returns the variables for a plugin's setup or check: those in force, the plugin's
// own, and more.
func (in *installation) environment(p Plugin, more *variables) []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	env := slices.Concat(in.inForce, p.Env)
	dirs := in.pathDirs
	if more != nil {
		env = append(env, more.env...)
		dirs = slices.Concat(more.path, dirs)
	}
	return append(env, "PATH="+in.place.pathWith(dirs))
}

// before returns the Digest under which the plugin has been set up earlier, "" if it has not, and
// its variables.
func (in *installation) before(ctx context.Context,
	p Plugin) (hash string, v *variables, err error) {
	const script = `n=$0; for d do if [ -f "$d/$n.installed" ]; then cat "$d/$n.installed"; printf ' %s' "$d/$n"; exit; fi; done`
	out, err := in.run(ctx, script, append([]string{p.Name}, in.place.all...)...)
	hash, dir, ok := strings.Cut(out, " ")
	if err != nil || !ok {
		return "", &variables{env: environ.Merge(p.Env)}, err
	}
	v, err = in.variables(ctx, p, dir)
	return hash, v, err
}

// check runs the plugin's check.
func (in *installation) check(ctx context.Context, p Plugin, v *variables) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	var out lastlines.Writer
	code, err := in.box.Run(ctx, &sandbox.Cmd{
		Args: []string{"sh", "-c", p.Check}, Env: slices.Concat(in.ambient, in.environment(p, v)),
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

// enforce puts variables in force: in the main session, and in all that is started later.
func (in *installation) enforce(ctx context.Context, v *variables) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(v.env) == 0 && len(v.path) == 0 {
		return nil
	}
	env, dirs := append(slices.Clone(in.inForce), v.env...), slices.Concat(v.path, in.pathDirs)
	added := slices.Clone(v.env)
	if len(v.path) > 0 {
		added = append(added, "PATH="+in.place.pathWith(dirs))
	}
	res, err := in.box.Execute(ctx, v.exports(), sandbox.Timeout(time.Minute))
	if err != nil {
		return fmt.Errorf("set its variables in the main session: %w", err)
	}
	if res.State != sandbox.Exited || res.ExitCode != 0 {
		return fmt.Errorf("set its variables in the main session: exit status %d: %s", res.ExitCode,
			lastlines.Of(res.Output))
	}
	if box, ok := sandbox.As[Environment](in.box); ok {
		box.AddEnv(added...)
	}
	in.inForce, in.pathDirs = env, dirs
	return nil
}

// remove removes the plugin's files from the box.
func (in *installation) remove(name string) error {
	return in.tidy(`chmod -R u+rwx "$0" 2>/dev/null; rm -rf "$0" "$0.env" "$0.path" "$0.installed"`,
		path.Join(in.place.dir, name))
}

// tidy runs one of this package's scripts, even when the caller's ctx has ended.
func (in *installation) tidy(script string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := in.run(ctx, script, args...)
	return err
}

// run runs one of this package's scripts and returns its standard output.
func (in *installation) run(ctx context.Context, script string, args ...string) (string, error) {
	return output(ctx, in.box, script, args...)
}

// scriptMax is how much of a script's output is read: the environment of a process is the longest.
const scriptMax = 4 << 20

func output(ctx context.Context, box sandbox.Sandbox, script string,
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
