package plugin

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/lastlines"
	"github.com/sandshell/sandshell/sandbox"
)

// A Plugin is a program, a library or a setting that a sandbox is to have.
type Plugin struct {
	// Name names the plugin, and its directory in the box: letters, digits, "-", "_" and ".", a
	// letter or digit first.
	Name string
	// Files are copied into the box. The root holds setup.sh, which runs under the interpreter that
	// its first line names ("#!/bin/bash"), or else under sh. Files that begin with "#!" are made
	// executable: an embed.FS has no permissions. Default: none, for a plugin that only has
	// variables or a check. A panic of it is an error.
	Files fs.FS
	// Env are variables, each "NAME=value", in force like those that setup.sh sets. Of several of a
	// name the last counts.
	Env []string
	// Requires names the plugins that are installed before this one: they are in the same call, or
	// were in an earlier one on the same Installer.
	Requires []string
	// Check is a shell command that succeeds if the plugin is there: then setup.sh does not run.
	// After setup.sh the Check has to succeed. It sees the variables of the plugin. Default: the
	// plugin is there if the same Digest has been set up before.
	Check string
	// Timeout bounds setup.sh, and Check. Default: 10 minutes.
	Timeout time.Duration
	// Output gets the raw output of setup.sh, as it comes. Plugins that do not require each other
	// are set up side by side: a Writer that several share has to allow concurrent calls. An error
	// or a panic of Write ends the setup. Default: none.
	Output io.Writer
}

const timeout = 10 * time.Minute

// Install makes sure that the plugins are in the sandbox; an Installer does it itself, also one
// that sb wraps (sandbox.As). Each plugin is set up after those that it requires, and side by side
// with others. When one fails, those that do not require it are still set up.
//
// Errors are *Error, joined. Mistakes in the plugins themselves (a name, a missing or circular
// requirement, no setup.sh) are reported before anything runs: see Check. After an error the
// sandbox is as usable as before, and the directories of the plugins that failed are gone.
//
// The main session must not have an unfinished command: the error is sandbox.ErrBusy. Calls on the
// same Installer wait for each other.
func Install(ctx context.Context, sb sandbox.Sandbox, plugins ...Plugin) error {
	box, ok := sandbox.As[Installer](sb)
	if !ok {
		box = NewMixin(sb)
	}
	if err := box.InitPlugins(ctx, plugins...); err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	return nil
}

// Check finds mistakes in the plugins themselves, as Install does before anything runs. All that
// they require has to be among them.
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
	Output   string // of setup.sh: head and tail, up to 4 MiB
	Omitted  int64  // bytes cut out of the middle of Output
	Err      error  // the reason; nil if it is the exit code
}

// Error implements error. The reason is Err, and the last lines of Output.
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

// check finds mistakes in the plugin, without those in what it requires.
func (p *Plugin) check() error {
	if !validName.MatchString(p.Name) {
		return fmt.Errorf("%q: a name has letters, digits, \"-\", \"_\" and \".\", and a letter "+
			"or digit first", p.Name)
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
	var text []byte
	err := guard.Call("Plugin.Files", func() (err error) {
		text, err = fs.ReadFile(p.Files, "setup.sh")
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: Files has to have setup.sh in its root: %w", p.Name, err)
	}
	if first, _, _ := strings.Cut(string(text), "\n"); strings.HasSuffix(first, "\r") {
		return fmt.Errorf("%s: the lines of setup.sh end as on Windows (CRLF), which no shell "+
			"understands: save it with LF", p.Name)
	}
	return nil
}

// checkVariable reports whether kv is "NAME=value" with a NAME that a shell can export: an
// environment may have others.
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
