package kubebox

import (
	"context"
	"fmt"
	"slices"

	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// SSHConfig writes what a person's own clients need to reach the box, and returns the path of a
// configuration for OpenSSH: with
//
//	ssh -F PATH NAME
//	scp -F PATH file NAME:
//	rsync -e "ssh -F PATH" …
//
// and an editor's remote mode, which takes such a file too. NAME is PodName. Beside the
// configuration lie a key of its own, not the box's, and the box's host key. They go when the box
// is closed; those of a program that was killed, with the next Reap.
//
// The clients reach the box through "kubectl exec", so the kubectl command has to be there, and its
// user to be allowed it; no port is opened. The configuration says which kubeconfig and context it
// is to use, whatever the environment of the client is. What they start ends with them.
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
