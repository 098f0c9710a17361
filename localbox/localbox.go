// Package localbox is a sandbox on this machine. It ISOLATES NOTHING: commands run as the user who
// runs the program, with that user's files, network and processes. It is for trusted commands, for
// trying things out, and for programs that are in a container already.
//
// Commands start in a directory of the caller's choice, or in a temporary one that Close removes.
// Close ends every process that the box has started.
//
// If the program is killed, nothing closes the box. Its terminals hang up, and shells and most
// programs end when they do. Processes that ignore it, and the directory, stay until any program of
// the same user calls [Reap].
//
// It runs on Linux and macOS. On Linux it reads from /proc whether a program waits for input. Where
// there is no /proc, such as on macOS, a waiting program is reported as running. On Windows, New
// returns errors.ErrUnsupported.
package localbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/internal/tempdir"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

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
	if !programs.Supported {
		return nil, fmt.Errorf("%w on this system, which has no terminals as Unix has them: use "+
			"package sshbox, or WSL", errors.ErrUnsupported)
	}
	if err := c.validate(); err != nil {
		return nil, err
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
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	box, err := shellbox.New(ctx, h, shellbox.Options{Dir: dir, Env: c.Env, Shell: c.Shell,
		Grace: c.Grace, StartLimit: c.StartLimit, Logger: c.Logger})
	if errors.Is(err, fs.ErrNotExist) && len(c.Shell) > 0 {
		err = fmt.Errorf("Config.Shell: %w", err)
	}
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
