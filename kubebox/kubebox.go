package kubebox

import (
	"context"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A KubeBox is a pod as a [sandbox.Sandbox]. [New], [Cluster.Attach] and [Pool.Get] return one.
// Beside the methods below it has these, which [shellbox.Box] and [plugin.Mixin] document:
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
//	Activity, Shared, Mark                     what is known of the box
//	Detach, Close, String                      its end and its name
type KubeBox struct {
	*shell
	*mixin
	host   *host
	config *Config // nil if Attach or Join has returned the box
}

// Aliases keep the fields of embedded types unexported, so that no caller can assign to them.
type (
	shell = shellbox.Box
	mixin = plugin.Mixin
)

var (
	_ sandbox.Sandbox    = (*KubeBox)(nil)
	_ plugin.Installer   = (*KubeBox)(nil)
	_ plugin.Environment = (*KubeBox)(nil)
)

func newKubeBox(box *shellbox.Box, h *host) *KubeBox {
	b := &KubeBox{shell: box, host: h}
	b.mixin = plugin.NewMixin(b)
	return b
}

// PodName returns the pod's name.
func (b *KubeBox) PodName() string { return b.host.pod.Name }

// Namespace returns the pod's namespace.
func (b *KubeBox) Namespace() string { return b.host.cluster.Namespace }

// PodUID returns the cluster's own id for the pod, which no other pod ever has.
func (b *KubeBox) PodUID() string { return string(b.host.pod.UID) }

// Lost returns why the box is lost. It returns nil if the box is there, or if ctx ends before that
// is known.
func (b *KubeBox) Lost(ctx context.Context) error { return b.host.Lost(ctx) }

// A host is a pod with boxd as a shellbox.Host.
type host struct {
	*remotebox.Host
	cluster *kube.Cluster
	pod     *kube.Pod
}
