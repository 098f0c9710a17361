package sshbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// SSHConfig writes a configuration with which a person's own SSH clients reach the box, and returns
// its path. NAME is ContainerName:
//
//	ssh -F PATH NAME
//	scp -F PATH file NAME:
//	rsync -e "ssh -F PATH" …
//
// The remote mode of editors takes such a file too. Beside the configuration lie a key for these
// clients and the box's host key. Close removes these files. If the program is killed, the next New
// or Reap removes them.
//
// The clients run "docker exec", so they need the docker command; no port is opened. The
// configuration names the engine by its address and keys for TLS, or by the docker context, so that
// it works in any environment. For an engine from Config.Docker it has only the address, unless the
// environment or the current context has the same address. What the clients start ends with them.
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
