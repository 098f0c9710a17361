package kubebox

import (
	"log/slog"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/kube"
)

// A Cluster is a namespace of a Kubernetes cluster with boxes in it, whoever made them. The zero
// value is the one that kubectl would use; in a pod without a kubeconfig, the pod's own cluster and
// namespace. Its methods may be called from several goroutines.
type Cluster struct {
	// Kubeconfig is a file as kubectl takes it. Default: KUBECONFIG's, else ~/.kube/config. If
	// there is no such file and the program runs in a pod, the pod's service account is used.
	Kubeconfig string
	// Context is the context of the kubeconfig to use. Default: the current one.
	Context string
	// Namespace is where the boxes are. Default: the context's namespace, or the pod's own.
	Namespace string
	// Logger gets what happens beside the results, and at debug level each command: see
	// shellbox.Options. Default: none.
	Logger *slog.Logger
}

// open finds the cluster. It makes no request yet.
func (c Cluster) open() (*kube.Cluster, error) {
	return kube.Open(kube.Endpoint{Kubeconfig: c.Kubeconfig, Context: c.Context,
		Namespace: c.Namespace}, c.log())
}

func (c Cluster) log() *slog.Logger { return guard.Logger(c.Logger) }
