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

// What a Config is in the engine's words.

// source is the image.
func (c Config) source() docker.Source {
	s := docker.Source{Name: c.Image, Pull: docker.Pull(c.Pull), Platform: c.Platform,
		RegistryAuth: c.RegistryAuth}
	if c.Progress != nil {
		s.Progress = func(p docker.Progress) error { return c.progress(PullProgress(p)) }
	}
	return s
}

// progress calls Progress, if there is one. A panic of it is an error: it may be called in a
// goroutine of a pool's.
func (c Config) progress(p PullProgress) error {
	if c.Progress == nil {
		return nil
	}
	return guard.Call("Config.Progress", func() error {
		c.Progress(p)
		return nil
	})
}

// spec is the container, from that image on the engine of that address.
func (c Config) spec(image *docker.Image, address string) (docker.Spec, error) {
	s := docker.Spec{Name: c.Name, OwnBoxd: c.mounter(), Linger: c.Linger, Keep: c.Keep,
		Logger: c.Logger}
	mounts, tmpfs, err := c.mounts(address)
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
		User:   c.User, // else the image's
		Env:    slices.Clone(c.Env),
		Labels: c.Labels,
	}
	pids := max(c.PIDs, -1)
	s.Host = container.HostConfig{
		NetworkMode:    container.NetworkMode(c.Network),
		ExtraHosts:     c.ExtraHosts,
		Mounts:         slices.Concat(mounts, c.own),
		Tmpfs:          tmpfs,
		ReadonlyRootfs: c.ReadOnlyRoot,
		CapDrop:        []string{"ALL"},
		CapAdd:         c.capabilities(),
		SecurityOpt:    slices.Clone(c.SecurityOpt),
		Runtime:        c.Runtime,
		ShmSize:        c.ShmSize,
		Resources: container.Resources{
			Memory: c.Memory, MemorySwap: c.Memory, // swap included
			NanoCPUs:  int64(c.CPUs * 1e9),
			PidsLimit: &pids,
		},
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
			return s, fmt.Errorf("Config.DNS: %w", err)
		}
		s.Host.DNS = append(s.Host.DNS, a)
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

// user is whom the programs run as.
func (c Config) user(image *docker.Image) string {
	if c.User != "" {
		return c.User
	}
	// the group is the one that /etc/passwd says
	if user, _, _ := strings.Cut(image.User, ":"); user != "" {
		return user
	}
	return "root"
}

// boxdFor finds the boxd for an image by what the image (or, where it does not say, the engine)
// says of itself.
func boxdFor(image, os, arch string) (*bin.Binary, error) {
	if b := bin.For(arch); b != nil && (os == "" || os == "linux") {
		return b, nil
	}
	return nil, fmt.Errorf("image %q is for %s/%s: boxd is there for linux/amd64 and linux/arm64 "+
		"only", image, os, arch)
}

// usual are the capabilities that a package manager needs; boxd needs none.
var usual = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
	"CAP_SETUID", "CAP_SETGID"}

// capabilities is what the container has in the end.
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
		return []string{"ALL"} // and drop is left to the engine
	}
	caps := add
	if !slices.Contains(drop, "ALL") {
		caps = slices.DeleteFunc(slices.Concat(add, usual), func(name string) bool {
			return slices.Contains(drop, name)
		})
	}
	slices.Sort(caps)
	return slices.Compact(caps)
}

// plainRuntimes are those of which it is known that they give a container no capability that it was
// not asked to give.
var plainRuntimes = []string{"", "runc", "crun", "runsc", "nvidia", "io.containerd.runc.v2"}

// mounter reports whether processes in the container may change its mounts: others are not to
// depend on these then.
func (c Config) mounter() bool {
	caps := c.capabilities()
	return slices.Contains(caps, "ALL") || slices.Contains(caps, "CAP_SYS_ADMIN") ||
		!slices.Contains(plainRuntimes, c.Runtime)
}
