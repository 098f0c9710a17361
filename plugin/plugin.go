package plugin

import (
	"context"
	"errors"
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

// A Plugin is a program, a library or a setting that a sandbox needs.
type Plugin struct {
	// Name is the name of the plugin, and of its directory in the box. It consists of letters,
	// digits, "-", "_" and ".", and begins with a letter or a digit.
	Name string
	// Files are copied into the box. Their root holds setup.sh. Its interpreter is the one that its
	// first line names ("#!/bin/bash"), or else sh. Files that begin with "#!" are made executable,
	// because an embed.FS has no permissions. Default: none, for a plugin that has only variables
	// or a check. If Files panic, Install returns an error.
	Files fs.FS
	// Env holds variables, each "NAME=value", which are set as those of setup.sh are. If a name
	// occurs more than once, the last value counts.
	Env []string
	// Requires names the plugins that are installed before this one. They are in the same call of
	// Install, or were in an earlier one on the same Installer.
	Requires []string
	// Check is a shell command that succeeds if the box has the plugin. If it succeeds, setup.sh
	// does not run. After setup.sh it must succeed. It has the plugin's variables. Default: the box
	// has the plugin if setup.sh has run there for the same Digest.
	Check string
	// Timeout is the longest time that setup.sh may take, and that Check may take. Default: 10
	// minutes.
	Timeout time.Duration
	// Output gets the raw output of setup.sh as it comes. Plugins that do not require each other
	// are set up at the same time, so a Writer that several plugins share must allow concurrent
	// calls. If Write fails or panics, the setup ends. Default: none.
	Output io.Writer
}

const defaultTimeout = 10 * time.Minute

// Install installs the plugins that the sandbox does not have. If sb is an Installer, or wraps one
// (sandbox.As), that Installer installs them. Each plugin is set up after those that it requires,
// at the same time as the others. If a plugin fails, those that do not require it are still set up.
//
// Install reports mistakes in the plugins (a bad name, a missing or circular requirement, no
// setup.sh) before anything runs: see Check. The other errors are of type *Error, joined. After an
// error the sandbox is usable, and the directories of the plugins that failed are removed.
//
// If the main session has an unfinished command, the error is sandbox.ErrBusy. Calls on the same
// Installer wait for each other.
func Install(ctx context.Context, sb sandbox.Sandbox, plugins ...Plugin) error {
	if sb == nil {
		return errors.New("plugin: Install: the sandbox is nil: make a box first")
	}
	box, ok := sandbox.As[Installer](sb)
	if !ok {
		box = NewMixin(sb)
	}
	if err := box.InitPlugins(ctx, plugins...); err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	return nil
}

// Check reports mistakes in the plugins, as Install does before anything runs. It runs nothing. The
// plugins that they require must be among them.
func Check(plugins ...Plugin) error {
	if _, err := validateAndSort(plugins, nil); err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	return nil
}

// An Error says why a plugin could not be installed.
type Error struct {
	Plugin   string // the plugin's Name
	Box      string // the box, as its String says
	ExitCode int    // the exit status of setup.sh; -1 if setup.sh did not run to its end
	Output   string // head and tail of the output of setup.sh, up to 4 MiB
	Omitted  int64  // bytes left out of the middle of Output
	Err      error  // the reason; nil if the reason is ExitCode
}

// Error returns a text with Err and the last lines of Output.
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

// validate reports mistakes in the plugin. It does not look at the plugins that this one requires.
func (p *Plugin) validate() error {
	if !validName.MatchString(p.Name) {
		return fmt.Errorf("Plugin.Name: %q is no name: a name has letters, digits, \"-\", "+
			"\"_\" and \".\", and begins with a letter or a digit", p.Name)
	}
	for _, kv := range p.Env {
		if err := validateVariable(kv); err != nil {
			return fmt.Errorf("%s: Plugin.Env: %w", p.Name, err)
		}
	}
	if p.Timeout < 0 {
		return fmt.Errorf("%s: Plugin.Timeout: %v is negative: 0 stands for %v", p.Name, p.Timeout,
			defaultTimeout)
	}
	if p.Files == nil {
		if len(p.Env) == 0 && len(p.Requires) == 0 && p.Check == "" {
			return fmt.Errorf("%s: Plugin.Files: it has neither Files, Env, Requires nor Check: "+
				"give one of them", p.Name)
		}
		return nil
	}
	var text []byte
	err := guard.Call("Plugin.Files", func() (err error) {
		text, err = fs.ReadFile(p.Files, "setup.sh")
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: Plugin.Files: there is no setup.sh in the root: %w", p.Name, err)
	}
	if first, _, _ := strings.Cut(string(text), "\n"); strings.HasSuffix(first, "\r") {
		return fmt.Errorf("%s: Plugin.Files: the lines of setup.sh end with CRLF, as on Windows, "+
			"which no shell understands: save it with LF", p.Name)
	}
	return nil
}

// validateVariable returns an error unless kv is "NAME=value" with a NAME that a shell can export.
// The environment of a process may have other names.
func validateVariable(kv string) error {
	name, value, ok := strings.Cut(kv, "=")
	switch {
	case !ok:
		return fmt.Errorf("%q is not NAME=value", kv)
	case !validVariable.MatchString(name):
		return fmt.Errorf("%q is not a name that a shell can export", name)
	case strings.Contains(value, "\x00"):
		return fmt.Errorf("the value of %s has a zero byte", name)
	}
	return nil
}
