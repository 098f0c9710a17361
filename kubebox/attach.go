package kubebox

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// Attach takes over a running box by the pod's UID or name: its sessions with their directories,
// variables and unfinished commands, and its jobs with their logs (Session, Sessions, Job, Jobs).
// Runs that were under way are killed. A program that had the box before loses it: its calls return
// sandbox.ErrLost. A box whose pod was replaced by another of the same name is lost.
//
// From then on the box is this program's. Unless it was made with Config.Keep, it ends when this
// program does. Call InitPlugins again for the box to know its plugins.
func (c Cluster) Attach(ctx context.Context, id string) (*KubeBox, error) {
	cluster, err := c.open()
	var box *KubeBox
	if err == nil {
		defer cluster.Close()
		box, err = attach(ctx, cluster, id, c.log())
	}
	if err != nil {
		return nil, fmt.Errorf("kubebox: attach to box %q: %w", id, err)
	}
	return box, nil
}

func attach(ctx context.Context, cluster *kube.Cluster, id string,
	log *slog.Logger) (*KubeBox, error) {
	box, h, err := remotebox.Attach(ctx, "KubeBox", shellbox.Options{Logger: log},
		func(ctx context.Context) (*host, error) {
			pod, err := cluster.Find(ctx, id, log)
			if err != nil {
				return nil, err
			}
			return connect(ctx, cluster, pod)
		})
	if err != nil {
		return nil, err
	}
	return newKubeBox(box, h), nil
}
