package kubebox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/remotebox"
)

// Reap deletes pods that boxes have left: those that have ended, or have not begun to run, and
// whose owner has ended. It returns how many it has deleted.
//
// A box that runs is left alone: it is kept, or ends by itself. Pods that this program could not
// delete, because the API server did not answer New or Close, are deleted whether they run or not.
// Reap also removes from this machine what killed programs of this user have left of SSHConfig.
func (c Cluster) Reap(ctx context.Context) (removed int, err error) {
	cluster, err := c.open()
	if err == nil {
		defer cluster.Close()
		removed, err = cluster.Reap(ctx, c.log())
	}
	if err = errors.Join(err, remotebox.ReapSSHConfigs(c.log())); err != nil {
		err = fmt.Errorf("kubebox: %w", err)
	}
	return removed, err
}

// Remove deletes a box by the pod's UID or name, whoever made it and whether it runs or not. A
// program that uses the box loses it. Remove returns nil if there is no such pod, and an error if
// the pod is not a box.
func (c Cluster) Remove(ctx context.Context, id string) error {
	cluster, err := c.open()
	if err == nil {
		defer cluster.Close()
		err = cluster.RemoveBox(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("kubebox: %w", err)
	}
	return nil
}

// Prune removes the NetworkPolicy that NetworkNone has made in the namespace, unless a box still
// needs it.
func (c Cluster) Prune(ctx context.Context) error {
	cluster, err := c.open()
	if err == nil {
		defer cluster.Close()
		err = cluster.AllowNetwork(ctx)
	}
	if err != nil {
		return fmt.Errorf("kubebox: %w", err)
	}
	return nil
}
