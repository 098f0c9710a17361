package kubebox

import (
	"context"

	"github.com/sandshell/sandshell/internal/kube"
)

// Remove deletes a box, which id names by the pod's UID or name, even if it runs. A program that
// uses the box loses it. Remove returns nil if there is no such pod, and an error if the pod is not
// a box.
func (c Cluster) Remove(ctx context.Context, id string) error {
	return c.do(func(k *kube.Cluster) error { return k.RemoveBox(ctx, id) })
}
