package kubebox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/tempdir"
)

// Reap deletes the pods that boxes have left behind: pods that have ended, or have not begun to
// run, and whose owner has ended. It returns how many it has deleted.
//
// Reap leaves boxes that run alone, since they are kept or end by themselves. There is one
// exception: Reap deletes pods that this program could not delete because the API server did not
// answer New or Close, even if they run. It also removes from this machine the files that SSHConfig
// and Fork have written for programs of this user that were killed.
func (c Cluster) Reap(ctx context.Context) (removed int, err error) {
	cluster, err := c.open()
	if err == nil {
		defer cluster.Close()
		removed, err = cluster.Reap(ctx, c.log())
	}
	_, failed := tempdir.Reap(forkPrefix, func(string) error { return nil })
	if err = errors.Join(err, failed, remotebox.ReapSSHConfigs(c.log())); err != nil {
		err = fmt.Errorf("kubebox: %w", err)
	}
	return removed, err
}
