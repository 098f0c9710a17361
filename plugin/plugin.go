package plugin

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/sandbox"
)

// A Plugin is something that a sandbox is to have.
type Plugin struct {
	// Name is what the plugin is known by, and its directory in the box is called: letters, digits, "-", "_" and ".", a letter or digit first.
	Name string
	// Files are copied into the box. In the root there must be setup.sh, which is run by what its first line names, or by sh. Files that begin with
	// "#!" are made executable: an embed.FS has no permissions. Default: none, for a plugin that has only variables or a check.
	Files fs.FS
	// Env are variables, each "NAME=value", in force like those that setup.sh sets. Of several of a name the last counts.
	Env []string
	// Requires are names of plugins that have to be there before: among those of the same call, or installed by an earlier call on the same box value.
	Requires []string
	// Check is a shell command that succeeds if the plugin is there: then nothing is run. After setup.sh it has to succeed. It runs with the
	// variables that an earlier setup.sh of the plugin has set. Default: the plugin is there if the same files have been set up before.
	Check string
	// Timeout bounds setup.sh, and Check. Default: 10 minutes.
	Timeout time.Duration
	// Output gets what setup.sh prints, as it comes, raw. Plugins that do not depend on each other are set up side by side: one Writer for
	// several has to stand concurrent calls. An error of Write ends the setup. Default: none.
	Output io.Writer
}

const timeout = 10 * time.Minute

// Install makes sure that the plugins are in the sandbox. Each is set up after those that it requires, and side by side with others. When
// one fails, those that do not require it are still set up. Errors are *Error, joined; but what is wrong with the plugins themselves (a name, a
// missing or circular requirement, no setup.sh) is told before anything runs. After an error the sandbox is as usable as before, and of the plugins that
// failed there is nothing left in their directories.
//
// No command may be unfinished in the main session: sandbox.ErrBusy. One Install at a time works on a box that has a Mixin; others wait.
func Install(ctx context.Context, sb sandbox.Sandbox, plugins ...Plugin) error {
	box, ok := sb.(Installer)
	if !ok {
		box = NewMixin(sb)
	}
	if err := box.InitPlugins(ctx, plugins...); err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	return nil
}

// Check finds what is wrong with the plugins themselves, as Install does before anything runs: all that they require has to be among them.
func Check(plugins ...Plugin) error {
	if _, err := inOrder(plugins, nil); err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	return nil
}

// An Error says why a plugin is not there.
type Error struct {
	Plugin   string
	Box      string // its String
	ExitCode int    // of setup.sh, or of Check if Checked; -1 if it did not end
	Output   string // of setup.sh, up to 16 MiB, of more the begin and the end
	Omitted  int64  // bytes of it that are missing in between
	Err      error  // what else than the exit code; nil if nothing
}

// Error implements error: one line, or the last that setup.sh printed.
func (e *Error) Error() string {
	reason := lastlines.Of(e.Output)
	switch {
	case e.Err != nil && reason != "":
		reason = e.Err.Error() + ": " + reason
	case e.Err != nil:
		reason = e.Err.Error()
	case reason == "":
		reason = fmt.Sprintf("setup.sh ended with exit status %d and printed nothing", e.ExitCode)
	}
	return fmt.Sprintf("failed to install %s on %s: %s", e.Plugin, e.Box, reason)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

var (
	validName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	validVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// check finds what is wrong with a plugin before it is used.
func (p *Plugin) check() error {
	if !validName.MatchString(p.Name) {
		return fmt.Errorf("%q: a name has letters, digits, \"-\", \"_\" and \".\", and a letter or digit first", p.Name)
	}
	for _, kv := range p.Env {
		if err := checkVariable(kv); err != nil {
			return fmt.Errorf("%s: Env: %w", p.Name, err)
		}
	}
	if p.Timeout < 0 {
		return fmt.Errorf("%s: a Timeout of %v", p.Name, p.Timeout)
	}
	if p.Files == nil {
		return nil
	}
	text, err := fs.ReadFile(p.Files, "setup.sh")
	if err != nil {
		return fmt.Errorf("%s: Files has to have setup.sh in its root: %w", p.Name, err)
	}
	if first, _, _ := strings.Cut(string(text), "\n"); strings.HasSuffix(first, "\r") {
		return fmt.Errorf("%s: the lines of setup.sh end as on Windows (CRLF), which no shell understands: save it with LF", p.Name)
	}
	return nil
}

// checkVariable finds what is wrong with "NAME=value". A shell has to export it, which takes fewer names than an environment does.
func checkVariable(kv string) error {
	name, value, ok := strings.Cut(kv, "=")
	switch {
	case !ok:
		return fmt.Errorf("%q is not NAME=value", kv)
	case !validVariable.MatchString(name):
		return fmt.Errorf("%q is not a variable's name", name)
	case strings.Contains(value, "\x00"):
		return fmt.Errorf("the value of %s has a zero byte", name)
	}
	return nil
}
