package kubebox

import (
	"context"

	"github.com/sandshell/sandshell/internal/kube"
)

// Remove deletes a box by the pod's UID or name, even if the box runs. A program that uses the box
// loses it. If there is no such pod, Remove returns nil. If the pod is not a box, Remove returns an
// error.
func (c Cluster) Remove(ctx context.Context, id string) error {
	return c.do(func(k *kube.Cluster) error { return k.RemoveBox(ctx, id) })
}
