package main

import (
	"context"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// docker is the Docker engine that the docker command would use.
type docker struct{ engine sshbox.Engine }

func (d docker) place(o making) (sandbox.Place, error) {
	c := sshbox.Config{Keep: o.keep, Pull: sshbox.PullPolicy(o.pull)}
	if o.pull == "missing" {
		c.Pull = sshbox.PullMissing
	}
	if o.progress != nil {
		c.Progress = func(p sshbox.PullProgress) {
			if p.Layer == "" {
				o.progress(p.Image + ": " + p.Status)
			} else {
				o.progress("pulling " + p.Image)
			}
		}
	}
	return sshbox.Place{Config: c}, nil
}

func (docker) name(box sandbox.Sandbox) string {
	if b, ok := sandbox.As[*sshbox.DockerSSHBox](box); ok {
		return b.ContainerName()
	}
	return ""
}

func (d docker) list(ctx context.Context) ([]boxInfo, error) {
	return infos(d.engine.List(ctx))
}

func infos(boxes []sshbox.BoxInfo, err error) ([]boxInfo, error) {
	list := make([]boxInfo, 0, len(boxes)) // not nil, for JSON
	for _, b := range boxes {
		list = append(list, boxInfo{ID: b.ID, Name: b.Name, Image: b.Image, State: b.State,
			Created: b.Created, Keep: b.Keep, Host: b.Owner.Host, PID: b.Owner.PID,
			Labels: b.Labels})
	}
	return list, err
}

func (d docker) join(ctx context.Context, id string) (sandbox.Sandbox, error) {
	return d.engine.Join(ctx, id)
}

func (d docker) remove(ctx context.Context, id string) error { return d.engine.Remove(ctx, id) }

func (d docker) reap(ctx context.Context) (int, error) { return d.engine.Reap(ctx) }

func (d docker) prune(ctx context.Context) (pruned, error) {
	p, err := d.engine.Prune(ctx)
	return pruned(p), err
}

func (docker) hasImages() bool { return true }
