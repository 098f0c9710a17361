package containers

import (
	"context"
	"fmt"
	"slices"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/sshbox"
)

// hasOutward reports whether a container of a Config can have Outward: see sshbox.Config.Outward.
// If the engine does not say what it is, New finds out.
func (p *Place) hasOutward(ctx context.Context, e *docker.Engine, c sshbox.Config) bool {
	if c.AllowNewPrivileges || len(c.DNS) > 0 {
		return false
	}
	p.mu.Lock()
	info := p.info
	p.mu.Unlock()
	if info == nil {
		asked, err := e.Info(ctx, client.InfoOptions{})
		if err != nil {
			return true
		}
		info = &asked.Info
		p.mu.Lock()
		p.info = info
		p.mu.Unlock()
	}
	runtime := c.Runtime
	if runtime == "" {
		runtime = info.DefaultRuntime
	}
	return canOutward(runtime, info.Runtimes[runtime].Path, info.KernelVersion, info.Architecture)
}

// canOutward reports whether a machine's containers can have Outward. path is the runtime's
// program.
func canOutward(runtime, path, kernel, architecture string) bool {
	if docker.IsGVisor(runtime, path) {
		return false
	}
	if !slices.Contains([]string{"x86_64", "amd64", "aarch64", "arm64"}, architecture) {
		return false
	}
	var major, minor int
	_, err := fmt.Sscanf(kernel, "%d.%d", &major, &minor)
	return err != nil || major > 5 || major == 5 && minor >= 5
}
