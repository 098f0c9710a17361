package sshbox

import (
	"errors"

	"github.com/sandshell/sandshell/internal/sshlogin"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// An SSHBox is a [sandbox.Sandbox] on a machine that one can log in to with SSH. It isolates
// nothing beyond what the account there does. [Dial] and [Machine.Attach] return one. Beside the
// methods below it has these, which [shellbox.Box] and [plugin.Mixin] document:
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
type SSHBox struct {
	*shell
	*mixin
	boxd *sshlogin.Box // nil without boxd
	why  string        // why there is no boxd
	// ended is called when the box is closed or detached, also more than once. It may be nil.
	ended func()
}

var (
	_ sandbox.Sandbox    = (*SSHBox)(nil)
	_ plugin.Installer   = (*SSHBox)(nil)
	_ plugin.Environment = (*SSHBox)(nil)
)

func newSSHBox(box *shellbox.Box, boxd *sshlogin.Box, why string) *SSHBox {
	b := &SSHBox{shell: box, boxd: boxd, why: why}
	b.mixin = plugin.NewMixin(b)
	return b
}

func (c DialConfig) options() shellbox.Options {
	return shellbox.Options{Dir: c.Dir, Shell: c.Shell, Grace: c.Grace, StartLimit: c.StartLimit,
		Logger: c.Logger}
}

// Close ends the box: see [shellbox.Box.Close].
func (b *SSHBox) Close() error {
	err := b.shell.Close()
	if b.ended != nil {
		b.ended()
	}
	return err
}

// Detach closes the connection, and the box goes on: see [shellbox.Box.Detach].
func (b *SSHBox) Detach() error {
	err := b.shell.Detach()
	if b.ended != nil && !errors.Is(err, errors.ErrUnsupported) {
		b.ended()
	}
	return err
}

// Boxd returns the path of boxd's program on the machine if boxd carries the box. The box then
// outlives a cut of the connection. Otherwise program is "", and why says why there is no boxd.
func (b *SSHBox) Boxd() (program, why string) {
	if b.boxd == nil {
		return "", b.why
	}
	return b.boxd.Program, ""
}

// BoxID returns the id for [Machine.Attach], or "" if boxd does not carry the box.
func (b *SSHBox) BoxID() string {
	if b.boxd == nil {
		return ""
	}
	return b.boxd.ID
}
