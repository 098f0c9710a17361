package kubebox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// Attach takes over a running box by the pod's UID or name. The KubeBox has the box's sessions with
// their directories, variables and unfinished commands, and its jobs with their logs: see Session,
// Sessions, Job and Jobs. Attach kills the box's Runs. The previous owner loses the box: its calls
// return sandbox.ErrLost.
//
// This program owns the box from then on. Unless the box was made with Config.Keep, it ends when
// this program does. The KubeBox does not know its plugins until InitPlugins is called again. If
// there is no such pod, or the box in it has ended, the error is a *sandbox.LostError.
func (c Cluster) Attach(ctx context.Context, id string) (*KubeBox, error) {
	return c.attach(ctx, id, remotebox.Alone)
}

// Join attaches to a running box beside the programs that have it already, which keep it. Sessions
// and jobs are shared by their ids. One program at a time uses a session: while its call is under
// way, calls of others return sandbox.ErrBusy. Close of the returned box leaves everything running.
func (c Cluster) Join(ctx context.Context, id string) (*KubeBox, error) {
	return c.attach(ctx, id, remotebox.Beside)
}

func (c Cluster) attach(ctx context.Context, id string, way remotebox.Way) (*KubeBox, error) {
	var cluster *kube.Cluster
	var box *KubeBox
	err := remotebox.CheckContext(ctx)
	if err == nil && id == "" {
		err = errors.New("the id is empty: List has them")
	}
	if err == nil {
		cluster, err = c.open()
	}
	if err == nil {
		defer cluster.Close()
		box, err = attach(ctx, cluster, id, way, c.log())
	}
	if err != nil {
		return nil, fmt.Errorf("kubebox: attach to box %q: %w", id, err)
	}
	return box, nil
}

func attach(ctx context.Context, cluster *kube.Cluster, id string, way remotebox.Way,
	log *slog.Logger) (*KubeBox, error) {
	box, h, err := remotebox.Attach(ctx, "KubeBox", shellbox.Options{Logger: log}, way,
		func(ctx context.Context) (*host, error) {
			pod, err := cluster.Find(ctx, id, log)
			if err != nil {
				return nil, err
			}
			return connect(ctx, cluster, pod, way)
		})
	if err != nil {
		return nil, err
	}
	return newKubeBox(box, h), nil
}
