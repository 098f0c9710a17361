// Package localbox is a sandbox on this machine. It ISOLATES NOTHING: commands run as the user who
// runs the program, with that user's files, network and processes. It is for trusted commands, for
// trying things out, and for programs that are in a container already.
//
// What it keeps apart is the place: commands start in a directory of the caller's choice, or in a
// temporary one that is removed at Close, and Close ends every process that the box has started.
//
// When the program is killed, nobody closes the box. Its terminals hang up then, at which shells
// and most programs end by themselves; what ignores that, and the directory, stays until [Reap]
// takes it, which any program of the same user may call.
//
// It runs on Linux and macOS. On Linux, whether a program waits for input is read from /proc; where
// there is none, such as on macOS, a waiting program is reported as running. On Windows, New
// returns errors.ErrUnsupported.
package localbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/sandshell/sandshell/internal/tempdir"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/program"
)

// A Config says what a LocalBox is to be. The zero value is usable.
type Config struct {
	// Dir is where sessions, jobs and Runs start; it must exist, and stays. Default: a new
	// temporary directory, which Close removes with all that is in it.
	Dir string
	// Shell is the shell of the sessions with its arguments, such as {"dash"} or {"busybox",
	// "ash"}. Default: bash, else sh.
	Shell []string
	// Env is added to this program's environment, "NAME=value".
	Env []string
	// Grace is how long a command that is to be killed may take after ^C, and again after SIGTERM.
	// Default: 1 s.
	Grace time.Duration
	// StartLimit bounds the time that a shell takes to its first prompt. Default: 30 s.
	StartLimit time.Duration
	// Logger gets what happens beside the results, and at debug level each command: see
	// shellbox.Options. Default: none.
	Logger *slog.Logger
}

// A LocalBox is a sandbox on this machine. New makes one.
type LocalBox struct {
	*shellbox.Box
	*plugin.Mixin
	host *host
	dir  string
}

var (
	_ sandbox.Sandbox    = (*LocalBox)(nil)
	_ plugin.Installer   = (*LocalBox)(nil)
	_ plugin.Environment = (*LocalBox)(nil)
	_ plugin.Confined    = (*LocalBox)(nil)
)

// New starts a LocalBox. ctx governs the start.
func New(ctx context.Context, c Config) (*LocalBox, error) {
	box, err := newBox(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("localbox: %w", err)
	}
	return box, nil
}

func newBox(ctx context.Context, c Config) (*LocalBox, error) {
	if !program.Supported {
		return nil, fmt.Errorf("%w on this system, which has no terminals as Unix has them: use "+
			"package sshbox, or WSL", errors.ErrUnsupported)
	}
	state, err := tempdir.Make(statePrefix)
	if err != nil {
		return nil, err
	}
	h := &host{state: state}
	dir := c.Dir
	if dir == "" {
		dir = filepath.Join(state.Path, "work")
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err == nil {
		if err = isDir(dir); err != nil {
			err = fmt.Errorf("Config.Dir: %w", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	box, err := shellbox.New(ctx, h, shellbox.Options{Dir: dir, Env: c.Env, Shell: c.Shell,
		Grace: c.Grace, StartLimit: c.StartLimit, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(state.Path, markFile), []byte(box.Mark()),
		0o600); err != nil {
		return nil, errors.Join(err, box.Close())
	}
	b := &LocalBox{Box: box, host: h, dir: dir}
	b.Mixin = plugin.NewMixin(b)
	return b, nil
}

// Dir returns the directory in which the box's sessions start.
func (b *LocalBox) Dir() string { return b.dir }

// PluginDir implements plugin.Confined: plugins change nothing of this machine but a temporary
// directory, which Close removes.
func (b *LocalBox) PluginDir() (string, error) {
	return b.host.pluginDir()
}

func isDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a directory")}
	}
	return err
}
