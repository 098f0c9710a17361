package kubebox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A KubeBox is a pod as a sandbox. It has all methods of sandbox.Sandbox, such as Execute, those of
// plugin.Mixin, and Detach, Session and Sessions of shellbox.Box.
type KubeBox struct {
	*shellbox.Box
	*plugin.Mixin
	host *host
}

var (
	_ sandbox.Sandbox    = (*KubeBox)(nil)
	_ plugin.Installer   = (*KubeBox)(nil)
	_ plugin.Environment = (*KubeBox)(nil)
)

// PodName is the pod's name, Namespace where it is, and PodUID the cluster's own id for it, which
// no other pod ever has.
func (b *KubeBox) PodName() string   { return b.host.pod.Name }
func (b *KubeBox) Namespace() string { return b.host.cluster.Namespace }
func (b *KubeBox) PodUID() string    { return string(b.host.pod.UID) }

// Lost returns why the box is lost; nil if it is there, or if that is not known when ctx ends.
func (b *KubeBox) Lost(ctx context.Context) error { return b.host.Lost(ctx) }

// New makes a pod, connects to it, and starts the main session. Close deletes the pod. When New
// fails, or ctx ends before it has returned, there is no pod left.
//
// The pod has the labels sandshell (this library's version), sandshell.box and sandshell.pid, and
// the annotation sandshell.host (the process it belongs to). Unless Config.Keep says otherwise, it
// ends by itself when this process has been gone for Config.Linger; Reap deletes what has ended.
//
// That the cluster does not give a box is an *Error, which says why and what to do.
func New(ctx context.Context, c Config) (*KubeBox, error) {
	box, err := c.box(ctx)
	if err != nil {
		return nil, fmt.Errorf("kubebox: %w", err)
	}
	return box, nil
}

func (c Config) box(ctx context.Context) (*KubeBox, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	cluster, err := c.open()
	if err != nil {
		return nil, err
	}
	h, err := c.start(ctx, cluster)
	if err != nil {
		cluster.Close()
		return nil, err
	}
	box, err := shellbox.New(ctx, h, shellbox.Options{Dir: c.Dir, Shell: c.Shell, Grace: c.Grace,
		StartLimit: c.StartLimit, Logger: c.Logger})
	if err != nil {
		return nil, fmt.Errorf("pod of image %q: %w", c.Image, err)
	}
	b := newKubeBox(box, h)
	if len(c.Plugins) > 0 {
		if err := b.InitPlugins(ctx, c.Plugins...); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

func newKubeBox(box *shellbox.Box, h *host) *KubeBox {
	b := &KubeBox{Box: box, host: h}
	b.Mixin = plugin.NewMixin(b)
	return b
}

// A host is a pod with boxd as a shellbox.Host.
type host struct {
	*remotebox.Host
	cluster *kube.Cluster
	pod     *kube.Pod
}

// start makes a pod and connects to it, or leaves nothing behind.
func (c Config) start(ctx context.Context, cluster *kube.Cluster) (*host, error) {
	spec, err := c.spec()
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeoutCause(ctx, c.StartTimeout,
		fmt.Errorf("the pod did not come up within %v: %w", c.StartTimeout,
			context.DeadlineExceeded))
	defer cancel()
	if c.Network == NetworkNone {
		if err := cluster.DenyNetwork(starting); err != nil {
			return nil, err
		}
	}
	pod, err := cluster.Create(starting, spec)
	if err == nil {
		err = pod.Ready(starting)
	}
	var h *host
	if err == nil {
		h, err = connect(starting, cluster, pod)
	}
	if err == nil {
		return h, nil
	}
	var known *kube.Error
	switch {
	case ctx.Err() != nil:
		err = ctxerr.Of(ctx)
	case starting.Err() != nil && !errors.As(err, &known):
		err = ctxerr.Of(starting)
	}
	err = fmt.Errorf("pod of image %q: %w", c.Image, err)
	if pod != nil {
		err = errors.Join(err, pod.Remove(ctx))
	}
	return nil, err
}

// connect connects to the boxd of a running pod, as its new owner.
func connect(ctx context.Context, cluster *kube.Cluster, pod *kube.Pod) (*host, error) {
	h, err := client.Connect(ctx, client.Config{Name: "KubeBox", Place: pod, Keep: pod.Keep,
		Patience: pod.Linger, Logger: pod.Logger})
	if err != nil {
		return nil, err
	}
	return &host{Host: remotebox.NewHost(h, pod, func() {}, cluster.Close), cluster: cluster,
		pod: pod}, nil
}
