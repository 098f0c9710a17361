package kubebox

import (
	"fmt"
	"log/slog"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/kube"
)

// A Cluster is a namespace of a Kubernetes cluster, with the boxes that any program has made there.
// The zero value is the namespace that kubectl would use, or, in a pod without a kubeconfig, the
// pod's own. Its methods may be called from several goroutines.
type Cluster struct {
	// Kubeconfig is the path of a kubeconfig file. Default: the files that KUBECONFIG names, or
	// ~/.kube/config, or, if there is no such file and the program runs in a pod, the pod's service
	// account.
	Kubeconfig string
	// Context is the context of the kubeconfig to use. Default: the current one.
	Context string
	// Namespace is the namespace that has the boxes. Default: the context's, or the pod's own.
	Namespace string
	// Logger gets events that no result shows and, at debug level, each command: see
	// shellbox.Options. Default: none.
	Logger *slog.Logger
}

// open finds the cluster. It makes no request.
func (c Cluster) open() (*kube.Cluster, error) {
	return kube.Open(kube.Endpoint{Kubeconfig: c.Kubeconfig, Context: c.Context,
		Namespace: c.Namespace, NewError: newError}, c.log())
}

// do calls f with the cluster, and says which package an error comes from.
func (c Cluster) do(f func(*kube.Cluster) error) error {
	cluster, err := c.open()
	if err == nil {
		defer cluster.Close()
		err = f(cluster)
	}
	if err != nil {
		return fmt.Errorf("kubebox: %w", err)
	}
	return nil
}

func (c Cluster) log() *slog.Logger { return guard.Logger(c.Logger) }
