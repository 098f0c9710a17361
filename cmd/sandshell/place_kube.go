package main

import (
	"context"

	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/sandbox"
)

// kube is the namespace of a Kubernetes cluster that kubectl would use.
type kube struct{ cluster kubebox.Cluster }

func (k kube) place(o making) (sandbox.Place, error) {
	c := kubebox.Config{Keep: o.keep, Pull: kubebox.PullPolicy(o.pull)}
	if o.pull == "missing" {
		c.Pull = kubebox.PullMissing
	}
	if o.progress != nil {
		c.Progress = func(p kubebox.Progress) { o.progress(p.Pod + ": " + p.Status) }
	}
	return kubebox.Place{Config: c}, nil
}

func (kube) name(box sandbox.Sandbox) string {
	if b, ok := sandbox.As[*kubebox.KubeBox](box); ok {
		return b.PodName()
	}
	return ""
}

func (k kube) list(ctx context.Context) ([]boxInfo, error) {
	boxes, err := k.cluster.List(ctx)
	list := make([]boxInfo, 0, len(boxes)) // not nil, for JSON
	for _, b := range boxes {
		list = append(list, boxInfo{ID: b.ID, Name: b.Name, Image: b.Image, State: b.State,
			Created: b.Created, Keep: b.Keep, Host: b.Owner.Host, PID: b.Owner.PID,
			Labels: b.Labels})
	}
	return list, err
}

func (k kube) join(ctx context.Context, id string) (sandbox.Sandbox, error) {
	return k.cluster.Join(ctx, id)
}

func (k kube) remove(ctx context.Context, id string) error { return k.cluster.Remove(ctx, id) }

func (k kube) reap(ctx context.Context) (int, error) { return k.cluster.Reap(ctx) }

func (k kube) prune(ctx context.Context) (pruned, error) { return pruned{}, k.cluster.Prune(ctx) }

func (kube) hasImages() bool { return true }
