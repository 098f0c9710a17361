package kubebox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// New makes a pod, connects to it, and starts the main session. Close deletes the pod. If New
// fails, or ctx ends before it has returned, there is no pod left.
//
// The pod has the labels sandshell (this library's version), sandshell.box and sandshell.pid, and
// the annotation sandshell.host (the process that the pod belongs to). Unless Config.Keep is set,
// the box ends by itself when this process has been gone for Config.Linger. Cluster.Reap deletes
// the pod that is left.
//
// With Config.Snapshot the files and sessions are those of the snapshot. If the box cannot have all
// of them as they were (because the image is another one, for example), the error is a
// *sandbox.IncompleteError.
//
// If the cluster refuses the pod, the error is an [*Error], which says why and what to do.
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
	if err := remotebox.CheckContext(ctx); err != nil {
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
	var state []byte // of the sessions
	if c.Snapshot != "" {
		if state, err = h.bringBack(ctx, c.Snapshot); err != nil {
			return nil, errors.Join(fmt.Errorf("snapshot %s: %w", c.Snapshot, err), h.Close())
		}
	}
	box, err := shellbox.New(ctx, h, shellbox.Options{Dir: c.Dir, Shell: c.Shell, Grace: c.Grace,
		StartLimit: c.StartLimit, Logger: c.Logger})
	if err != nil {
		err = remotebox.ExplainStart("Config", "the image", c.Dir, c.Shell, err)
		return nil, fmt.Errorf("pod of image %q: %w", c.Image, err)
	}
	if c.Snapshot != "" {
		if err := shellbox.Restore(ctx, box, state, c.Env); err != nil {
			return nil, errors.Join(fmt.Errorf("snapshot %s: %w", c.Snapshot, err), box.Close())
		}
	}
	b := newKubeBox(box, h)
	b.config = &c
	if len(c.Plugins) > 0 {
		if err := b.InitPlugins(ctx, c.Plugins...); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

// start makes a pod and connects to it. If start fails, it leaves no pod behind.
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
		h, err = connect(starting, cluster, pod, remotebox.Alone)
	}
	if err == nil {
		return h, nil
	}
	var explained *Error
	switch {
	case ctx.Err() != nil:
		err = ctxerr.Of(ctx)
	case starting.Err() != nil && !errors.As(err, &explained):
		err = ctxerr.Of(starting)
	}
	err = fmt.Errorf("pod of image %q: %w", c.Image, err)
	if pod != nil {
		err = errors.Join(err, pod.Remove(ctx))
	}
	return nil, err
}

// connect connects to the boxd of a running pod, as an owner.
func connect(ctx context.Context, cluster *kube.Cluster, pod *kube.Pod,
	way remotebox.Way) (*host, error) {
	h, err := client.Connect(ctx, client.Config{Name: "KubeBox", Place: pod, Keep: pod.Keep,
		Joins: bool(way), Patience: pod.Linger, Logger: pod.Logger.With("pod", pod.Name)})
	if err != nil {
		return nil, err
	}
	return &host{Host: remotebox.NewHost(h, pod, func() {}, cluster.Close), cluster: cluster,
		pod: pod}, nil
}
