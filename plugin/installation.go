package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/sandshell/sandshell/sandbox"
)

// outputMax is how much of a setup's output an Error holds.
const outputMax = 16 << 20

// An installation is one call of Install.
type installation struct {
	box     sandbox.Sandbox
	place   place
	ambient []string // variables for setups beside the plugins' own

	mu       sync.Mutex // held while the variables are changed, and the main session is told
	inForce  []string
	pathDirs []string
}

func newInstallation(ctx context.Context, box sandbox.Sandbox) (*installation, error) {
	fail := func(err error) (*installation, error) {
		return nil, fmt.Errorf("prepare %s for plugins: %w", box, err)
	}
	if _, err := box.Execute(ctx, ":"); err != nil { // in the end it has to take the variables
		return fail(err)
	}
	place, err := findPlace(ctx, box)
	if err != nil {
		return fail(err)
	}
	return &installation{box: box, place: *place, ambient: []string{
		"SANDSHELL_BOX=" + box.String(), "SANDSHELL_ROOT=" + place.root, "SANDSHELL_PACKAGE_MANAGER=" + place.packageManager,
		"DEBIAN_FRONTEND=noninteractive",
	}}, nil
}

// plugin installs one plugin, those that it requires being there.
func (in *installation) plugin(ctx context.Context, p Plugin) error {
	if p.Timeout == 0 {
		p.Timeout = timeout
	}
	if p.Output == nil {
		p.Output = io.Discard
	}
	failed := &Error{Plugin: p.Name, Box: in.box.String(), ExitCode: -1}
	err := in.try(ctx, p, failed)
	if err == nil && failed.ExitCode <= 0 {
		return nil
	}
	failed.Err = err
	return failed
}

// try does it, and notes in failed what is known of setup.sh.
func (in *installation) try(ctx context.Context, p Plugin, failed *Error) error {
	dir := in.place.dir + "/" + p.Name
	there, variables, err := in.before(ctx, p)
	if err != nil {
		return err
	}
	hash, files, err := copyOf(p)
	if err != nil {
		return err
	}
	defer os.RemoveAll(files)
	if there == hash || there == "" && p.Check != "" { // what has been set up otherwise is set up anew
		err := error(nil)
		if p.Check != "" {
			err = in.check(ctx, p, variables)
		}
		switch {
		case err == nil:
			return in.enforce(ctx, variables)
		case ctx.Err() != nil:
			return ctx.Err()
		case p.Files == nil:
			return fmt.Errorf("there are no Files to set it up with, and its check fails: %w", err)
		}
	}
	if err := in.setUp(ctx, p, dir, files, failed); err != nil || failed.ExitCode > 0 {
		return errors.Join(err, in.remove(p.Name))
	}
	variables, err = in.variables(ctx, p)
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

// copyOf writes the plugin's files to a temporary directory, and returns a hash of all that the setup depends on.
func copyOf(p Plugin) (hash, dir string, err error) {
	sum := sha256.New()
	names := make([]string, 0, len(p.Env))
	for name := range p.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(sum, "%q=%q\n", name, p.Env[name])
	}
	if dir, err = os.MkdirTemp("", "sandshell-plugin-"); err != nil || p.Files == nil {
		return hex.EncodeToString(sum.Sum(nil)), dir, err
	}
	if err = os.CopyFS(dir, p.Files); err != nil {
		os.RemoveAll(dir)
		return "", "", fmt.Errorf("copy its Files: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		os.RemoveAll(dir)
		return "", "", err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		mode := info.Mode()
		var text []byte
		switch {
		case mode.Type() == fs.ModeSymlink:
			target, err := root.Readlink(name)
			if err != nil {
				return err
			}
			text = []byte(target)
		case mode.IsRegular():
			if text, err = root.ReadFile(name); err != nil {
				return err
			}
			if strings.HasPrefix(string(text), "#!") {
				mode |= 0o111
			}
			mode |= 0o600
		case mode.IsDir():
			mode |= 0o700
		}
		fmt.Fprintf(sum, "%q %v %d\n", name, mode, len(text))
		sum.Write(text)
		if mode.Type() == fs.ModeSymlink {
			return nil
		}
		return root.Chmod(name, mode.Perm())
	})
	if err != nil {
		os.RemoveAll(dir)
		return "", "", fmt.Errorf("copy its Files: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), dir, nil
}

// setUp copies the files and runs setup.sh.
func (in *installation) setUp(ctx context.Context, p Plugin, dir, files string, failed *Error) error {
	if err := in.remove(p.Name); err != nil {
		return err
	}
	if p.Files == nil {
		return nil
	}
	if err := in.box.CopyTo(ctx, files, dir); err != nil {
		return err
	}
	env := append(in.environment(p, nil), "SANDSHELL_PLUGIN="+dir, "SANDSHELL_ENV="+dir+".env", "SANDSHELL_PATH="+dir+".path")
	s, err := in.box.Open(ctx, sandbox.Dir(dir), sandbox.Env(slices.Concat(in.ambient, env)...))
	if err != nil {
		return err
	}
	res, err := s.Execute(ctx, commandLine(p), sandbox.Timeout(p.Timeout), sandbox.Tee(p.Output), sandbox.MaxOutput(outputMax))
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

// commandLine returns the command that runs setup.sh as the kernel would, but where nothing may be executed too: on a tmpfs, as Docker mounts them.
func commandLine(p Plugin) string {
	text, err := fs.ReadFile(p.Files, "setup.sh")
	line, _, _ := strings.Cut(string(text), "\n")
	line, ok := strings.CutPrefix(line, "#!")
	interpreter, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || !ok || interpreter == "" {
		return "sh ./setup.sh"
	}
	command := quote(interpreter)
	if argument = strings.TrimSpace(argument); argument != "" {
		command += " " + quote(argument)
	}
	return command + " ./setup.sh"
}

// environment returns the variables of a plugin's setup or check: those in force, its own, and more.
func (in *installation) environment(p Plugin, more *variables) []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	env := slices.Clone(in.inForce)
	for name, value := range p.Env {
		env = append(env, name+"="+value)
	}
	dirs := in.pathDirs
	if more != nil {
		env = append(env, more.env...)
		dirs = slices.Concat(more.path, dirs)
	}
	return append(env, "PATH="+in.place.pathWith(dirs))
}

// before returns the hash of what has been set up earlier, empty if nothing has, and its variables.
func (in *installation) before(ctx context.Context, p Plugin) (hash string, v *variables, err error) {
	hash, err = in.run(ctx, `if [ -f "$0" ]; then cat "$0"; fi`, in.place.dir+"/"+p.Name+".installed")
	if err != nil || hash == "" {
		return "", &variables{env: environmentOf(p)}, err
	}
	v, err = in.variables(ctx, p)
	return hash, v, err
}

// check runs the plugin's check.
func (in *installation) check(ctx context.Context, p Plugin, v *variables) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	var out tail
	code, err := in.box.Run(ctx, &sandbox.Cmd{
		Args: []string{"sh", "-c", p.Check}, Env: slices.Concat(in.ambient, in.environment(p, v)), Stdout: &out, Stderr: &out,
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("%q ended with exit status %d", p.Check, code)
		if text := lastLines(out.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
	}
	return err
}

// enforce puts variables in force.
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
		return fmt.Errorf("set its variables in the main session: exit status %d: %s", res.ExitCode, lastLines(res.Output))
	}
	if box, ok := in.box.(interface{ AddEnv(kv ...string) }); ok {
		box.AddEnv(added...)
	}
	in.inForce, in.pathDirs = env, dirs
	return nil
}

// remove removes what is of a plugin in the box.
func (in *installation) remove(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // also when the caller's is over
	defer cancel()
	dir := path.Join(in.place.dir, name)
	_, err := in.run(ctx, `chmod -R u+rwx "$0" 2>/dev/null; rm -rf "$0" "$0.env" "$0.path" "$0.installed"`, dir)
	return err
}

// run runs a script of ours and returns what it prints.
func (in *installation) run(ctx context.Context, script string, args ...string) (string, error) {
	return output(ctx, in.box, script, args...)
}

func output(ctx context.Context, box sandbox.Sandbox, script string, args ...string) (string, error) {
	var out strings.Builder
	var errs tail
	code, err := box.Run(ctx, &sandbox.Cmd{Args: append([]string{"sh", "-c", script}, args...), Stdout: &out, Stderr: &errs})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit status %d: %s", code, lastLines(errs.String()))
	}
	return out.String(), err
}

// A tail keeps the end of what is written to it, by one or more.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const keep = 16 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 2*keep {
		t.text = slices.Clone(t.text[len(t.text)-keep:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
