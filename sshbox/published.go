package sshbox

import (
	"context"
	"fmt"
	"strconv"

	"github.com/moby/moby/client"
)

// Published returns, for each port of Config.Publish, the port on 127.0.0.1 of the engine's machine
// that leads to it.
func (b *DockerSSHBox) Published(ctx context.Context) (map[int]int, error) {
	res, err := b.host.engine.ContainerInspect(ctx, b.ContainerID(),
		client.ContainerInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask the engine for the published ports: %w", err)
	}
	ports := map[int]int{}
	if res.Container.NetworkSettings == nil {
		return ports, nil
	}
	for port, bindings := range res.Container.NetworkSettings.Ports {
		for _, binding := range bindings {
			if ports[int(port.Num())], err = strconv.Atoi(binding.HostPort); err != nil {
				return nil, fmt.Errorf("the engine's answer for port %v: %w", port, err)
			}
		}
	}
	return ports, nil
}
