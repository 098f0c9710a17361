package sshbox

import (
	"sync"

	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A DockerSSHBox is a container as a [sandbox.Sandbox]. [New], [Engine.Attach] and [Pool.Get]
// return one. Beside the methods below it has these, which [shellbox.Box] and [plugin.Mixin]
// document:
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
//	Detach, String                             its end and its name
type DockerSSHBox struct {
	*shell
	*mixin
	host   *dockerHost
	docker DockerClient // Config.Docker or Engine.Docker
	config *Config      // nil: not known, because the box was attached to
	fork   *fork        // what it shares with the other boxes of a Fork; nil: nothing
	closed sync.Once    // for what Close does after the container's end
}

// Aliases keep the fields of embedded types unexported, so that no caller can assign to them.
type (
	shell = shellbox.Box
	mixin = plugin.Mixin
)

var (
	_ sandbox.Sandbox    = (*DockerSSHBox)(nil)
	_ plugin.Installer   = (*DockerSSHBox)(nil)
	_ plugin.Environment = (*DockerSSHBox)(nil)
)

func newDockerSSHBox(box *shellbox.Box, h *dockerHost) *DockerSSHBox {
	b := &DockerSSHBox{shell: box, host: h}
	b.mixin = plugin.NewMixin(b)
	return b
}

// ContainerID returns the container's id, as docker inspect shows it.
func (b *DockerSSHBox) ContainerID() string { return b.host.container.ID }

// ContainerName returns the container's name.
func (b *DockerSSHBox) ContainerName() string { return b.host.container.Name }

// Close removes the container: see [shellbox.Box.Close].
func (b *DockerSSHBox) Close() error {
	err := b.shell.Close()
	b.closed.Do(b.fork.release)
	return err
}
