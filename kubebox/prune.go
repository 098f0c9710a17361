package kubebox

import (
	"context"

	"github.com/sandshell/sandshell/internal/kube"
)

// Prune removes the NetworkPolicy that New made in the namespace for NetworkNone. If a box still
// needs it, Prune returns an error.
func (c Cluster) Prune(ctx context.Context) error {
	return c.do(func(k *kube.Cluster) error { return k.AllowNetwork(ctx) })
}
