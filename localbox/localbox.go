// Package localbox has sandboxes on this machine. They ISOLATE NOTHING: commands run as the user
// who runs the program, with that user's files, network and processes. A LocalBox is for trusted
// commands, for trying things out, and for programs that are in a container already.
//
//	box, err := localbox.New(ctx, localbox.Config{})
//	if err != nil {
//		return err
//	}
//	defer box.Close()
//	box.Execute(ctx, "cd /tmp && X=1")
//	result, err := box.Execute(ctx, `echo "X is $X in $PWD"`)
//	if err != nil {
//		return err // an exit status other than 0 is no error
//	}
//	fmt.Print(result.Output) // X is 1 in /tmp
//
// Commands start in Config.Dir, or in a temporary directory that Close removes. Close ends every
// process that the box has started.
//
// If the program is killed, nothing closes the box. Its terminals hang up, which ends shells and
// most programs. Processes that ignore the hangup, and the temporary directory, stay until a
// program of the same user calls [Reap].
//
// LocalBox runs on Linux and macOS. On Linux it reads from /proc whether a program waits for input.
// Without /proc, as on macOS, a waiting program is reported as running. On Windows, New returns
// errors.ErrUnsupported.
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

// A LocalBox is a [sandbox.Sandbox] on this machine. [New] makes one. Beside the methods below it
// has these, which [shellbox.Box] and [plugin.Mixin] document:
//
//	Execute, Input, Wait, Interrupt, Type      commands in the main session
//	Screen, Resize, ID                         its terminal
//	Open, Session, Sessions                    more sessions
//	Background, Job, Jobs                      background jobs
//	Run                                        a program without a terminal
//	CopyTo, CopyFrom, Files                    files
//	History                                    undo for a directory
//	Dial, Listen                               connections
//	AsUser                                     the box for another user
//	InitPlugins, AddEnv, RemoveEnv             plugins and variables
//	Lost, Activity, Shared, Mark               what is known of the box
//	Detach, Close, String                      its end and its name
type LocalBox struct {
	*shell
	*mixin
	host *host
	dir  string
}

// Aliases keep the fields of embedded types unexported, so that no caller can assign to them.
type (
	shell = shellbox.Box
	mixin = plugin.Mixin
)

var (
	_ sandbox.Sandbox    = (*LocalBox)(nil)
	_ plugin.Installer   = (*LocalBox)(nil)
	_ plugin.Environment = (*LocalBox)(nil)
	_ plugin.Confined    = (*LocalBox)(nil)
)

// New starts a LocalBox. ctx governs New only.
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
		err = fmt.Errorf("Config.Shell: %w: install it, or leave Shell out", err)
	}
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(state.Path, markFile), []byte(box.Mark()),
		0o600); err != nil {
		return nil, errors.Join(err, box.Close())
	}
	b := &LocalBox{shell: box, host: h, dir: dir}
	b.mixin = plugin.NewMixin(b)
	return b, nil
}

// Dir returns the directory in which the box's sessions start.
func (b *LocalBox) Dir() string { return b.dir }

// PluginDir implements plugin.Confined. Plugins change only this temporary directory of the
// machine, which Close removes.
func (b *LocalBox) PluginDir() (string, error) {
	return b.host.pluginDir()
}
