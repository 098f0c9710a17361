package kubebox

import (
	"context"
	"fmt"
	"slices"

	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// SSHConfig writes what a person's own SSH clients need to reach the box. It returns the path of an
// OpenSSH configuration, for use as
//
//	ssh -F PATH NAME
//	scp -F PATH file NAME:
//	rsync -e "ssh -F PATH" …
//
// and in an editor's remote mode. NAME is PodName. In the same directory are a key for these
// clients and the box's host key. Close removes the directory. If the program is killed, the next
// Cluster.Reap does.
//
// The clients reach the box through "kubectl exec", so no port is opened. The kubectl command must
// be installed, and its user must have the right to exec. The configuration names the kubeconfig
// and the context, so it does not depend on the client's environment. What a client starts ends
// with the client.
func (b *KubeBox) SSHConfig(ctx context.Context) (path string, err error) {
	h := b.host
	command := slices.Concat(h.cluster.Kubectl(), []string{"exec", "-i", h.pod.Name, "-c",
		h.pod.Container(), "--", wire.Path, "join", h.pod.Box})
	path, err = h.SSHConfig.Path(ctx, h, h.pod.Name, command)
	if err != nil {
		return "", fmt.Errorf("ssh configuration of %s: %w", b, err)
	}
	return path, nil
}
