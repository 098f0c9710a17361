package sshbox

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
// and an editor's remote mode, which takes such a file too. NAME is ContainerName. Beside the
// configuration lie a key of its own, not the box's, and the box's host key. They go when the box
// is closed; those of a program that was killed, with the next New or Reap.
//
// The clients reach the box through "docker exec", so the docker command has to be there; no port
// is opened. The configuration says how that finds the engine: by its address and the keys for TLS,
// or by the docker context, whatever the environment of the client is. (Of an engine that is
// Config.Docker only the address is known, unless the environment or the current context has the
// same.) What they start ends with them.
func (b *DockerSSHBox) SSHConfig(ctx context.Context) (path string, err error) {
	h := b.host
	command := slices.Concat([]string{"docker"}, h.engine.DockerFlags(),
		[]string{"exec", "-i", h.container.ID, wire.Path, "join", h.container.Box})
	path, err = h.SSHConfig.Path(ctx, h, h.container.Name, command)
	if err != nil {
		return "", fmt.Errorf("ssh configuration of %s: %w", b, err)
	}
	return path, nil
}
