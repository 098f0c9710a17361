package sshbox

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/guard"
)

// source says which image the engine must have, and where the image comes from.
func (c Config) source() docker.Source {
	s := docker.Source{Name: c.Image, Pull: docker.Pull(c.Pull), Platform: c.Platform,
		RegistryAuth: c.RegistryAuth}
	if c.Progress != nil {
		s.Progress = func(p docker.Progress) error { return c.progress(PullProgress(p)) }
	}
	return s
}

// progress calls Progress, if there is one. If Progress panics, progress returns an error: the
// goroutine may be a pool's, where the caller cannot recover.
func (c Config) progress(p PullProgress) error {
	if c.Progress == nil {
		return nil
	}
	return guard.Call("Config.Progress", func() error {
		c.Progress(p)
		return nil
	})
}

// spec translates the Config into the engine's types, for a container from an image on the engine
// at an address.
func (c Config) spec(image *docker.Image, address string) (docker.Spec, error) {
	s := docker.Spec{Name: c.Name, OwnBoxd: c.mayMount(), Linger: c.Linger, Keep: c.Keep,
		AnyPIDs: c.PIDs == DefaultPIDs, Outward: c.Outward, Logger: c.Logger}
	mounts, err := c.mounts(address)
	if err != nil {
		return s, err
	}
	if s.Boxd, err = boxdFor(c.Image, image.OS, image.Arch); err != nil {
		return s, err
	}
	if c.Platform != "" {
		if s.Platform, err = docker.ParsePlatform(c.Platform); err != nil {
			return s, err
		}
	}
	if c.Entrypoint {
		s.Command = slices.Concat(image.Entrypoint, image.Command)
	}
	s.Config = container.Config{
		Image: c.Image, Hostname: c.Hostname,
		User:   c.User, // "": the image's
		Env:    slices.Clone(c.Env),
		Labels: c.Labels,
	}
	s.Host = container.HostConfig{
		NetworkMode:    container.NetworkMode(c.Network),
		ExtraHosts:     c.ExtraHosts,
		Mounts:         slices.Concat(mounts, c.own),
		Tmpfs:          c.tmpfs(),
		ReadonlyRootfs: c.ReadOnlyRoot,
		CapDrop:        []string{"ALL"},
		CapAdd:         c.capabilities(),
		SecurityOpt:    slices.Clone(c.SecurityOpt),
		Runtime:        c.Runtime,
		ShmSize:        c.ShmSize,
		Resources:      c.limits(),
	}
	if slices.Equal(s.Host.CapAdd, []string{"ALL"}) {
		s.Host.CapDrop = c.CapDrop
	}
	if !c.AllowNewPrivileges {
		s.Host.SecurityOpt = append(s.Host.SecurityOpt, "no-new-privileges")
	}
	for _, text := range c.DNS {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return s, err // validate has parsed it
		}
		s.Host.DNS = append(s.Host.DNS, a)
	}
	if c.Outward {
		// boxd answers; no search list adds to a name, and any user may have the port 53.
		s.Host.DNS = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
		s.Host.DNSSearch = []string{"."}
		s.Host.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
	}
	for _, port := range c.Publish {
		p, _ := network.PortFrom(uint16(port), network.TCP)
		if s.Host.PortBindings == nil {
			s.Host.PortBindings, s.Config.ExposedPorts = network.PortMap{}, network.PortSet{}
		}
		s.Config.ExposedPorts[p] = struct{}{}
		s.Host.PortBindings[p] = []network.PortBinding{
			{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1})}}
	}
	if c.GPUs != 0 {
		s.Host.DeviceRequests = []container.DeviceRequest{
			{Count: c.GPUs, Capabilities: [][]string{{"gpu"}}}}
	}
	return s, nil
}

// limits returns those on what the container may use.
func (c Config) limits() container.Resources {
	pids := max(c.PIDs, -1)
	return container.Resources{
		Memory: c.Memory, MemorySwap: c.Memory, // swap included
		NanoCPUs:  int64(c.CPUs * 1e9),
		PidsLimit: &pids,
	}
}

// user returns the user whom programs run as.
func (c Config) user(image *docker.Image) string {
	if c.User != "" {
		return c.User
	}
	// The group is not needed: /etc/passwd says it.
	if user, _, _ := strings.Cut(image.User, ":"); user != "" {
		return user
	}
	return "root"
}

// boxdFor returns the boxd for an image of a system and an architecture. If os is "", it is linux.
func boxdFor(image, os, arch string) (*bin.Binary, error) {
	if b := bin.For(arch); b != nil && (os == "" || os == "linux") {
		return b, nil
	}
	return nil, fmt.Errorf("image %q is for %s/%s: choose an image for linux/amd64 or linux/arm64",
		image, os, arch)
}

// defaultCapabilities are those that a package manager needs. boxd needs none.
var defaultCapabilities = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",
	"CAP_KILL", "CAP_SETUID", "CAP_SETGID"}

// capabilities returns the capabilities that the container is to have.
func (c Config) capabilities() []string {
	canonical := func(names []string) []string {
		var all []string
		for _, name := range names {
			if name = strings.ToUpper(name); name != "ALL" && !strings.HasPrefix(name, "CAP_") {
				name = "CAP_" + name
			}
			all = append(all, name)
		}
		return all
	}
	add, drop := canonical(c.CapAdd), canonical(c.CapDrop)
	if slices.Contains(add, "ALL") {
		return []string{"ALL"} // the engine takes CapDrop away from these
	}
	caps := add
	if !slices.Contains(drop, "ALL") {
		caps = slices.DeleteFunc(slices.Concat(add, defaultCapabilities), func(name string) bool {
			return slices.Contains(drop, name)
		})
	}
	slices.Sort(caps)
	return slices.Compact(caps)
}

// plainRuntimes are runtimes that give a container only the capabilities that were asked for.
var plainRuntimes = []string{"", "runc", "crun", "runsc", "nvidia", "io.containerd.runc.v2"}

// mayMount reports whether processes in the container may change its mounts. If so, the container
// must not share boxd's volume with others.
func (c Config) mayMount() bool {
	caps := c.capabilities()
	return slices.Contains(caps, "ALL") || slices.Contains(caps, "CAP_SYS_ADMIN") ||
		!slices.Contains(plainRuntimes, c.Runtime)
}
