package sshbox

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
)

// DefaultPIDs is the default limit on processes and threads: enough for parallel builds, and low
// enough to stop fork bombs.
const DefaultPIDs = 4096

// minMemory is the least memory of a container (linuxMinMemory in moby's daemon).
const minMemory = 6 << 20

const defaultLinger = 30 * time.Second

// validName is what the engine accepts as a name of a volume or a container (RestrictedNamePattern
// in moby's daemon/names).
var validName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)

// withDefaults returns the Config with its defaults filled in, or an error that names the first
// field that is wrong.
func (c Config) withDefaults() (Config, error) {
	if err := c.Check(); err != nil {
		return c, err
	}
	switch {
	case c.Snapshot != "":
		c.Image, c.Pull = c.Snapshot, PullNever
	case c.Image == "":
		c.Image = DefaultImage
	}
	if c.Linger == 0 {
		c.Linger = defaultLinger
	}
	if c.PIDs == 0 {
		c.PIDs = DefaultPIDs
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = time.Minute
	}
	c.Logger = c.log()
	return c, nil
}

func (c Config) log() *slog.Logger { return guard.Logger(c.Logger) }

// Check returns an error that names the first field that is wrong, or nil. New and NewPool check
// their Config themselves. Check asks neither the engine nor the network, so it does not know
// whether, for example, the image exists.
func (c Config) Check() error {
	if err := checkLinger("Config.Linger", c.Linger); err != nil {
		return err
	}
	switch c.Pull {
	case PullMissing, PullAlways, PullNever:
	default:
		return fmt.Errorf("Config.Pull: %q is no policy: use PullMissing, PullAlways or PullNever",
			c.Pull)
	}
	if err := c.checkImage(); err != nil {
		return err
	}
	if c.Name != "" && !validName.MatchString(c.Name) {
		return fmt.Errorf("Config.Name: %q is not a container's name: use letters, digits, \"_\", "+
			"\".\" and \"-\", and begin with a letter or a digit", c.Name)
	}
	if err := remotebox.CheckShell("Config.Shell", c.Shell); err != nil {
		return err
	}
	if err := plugin.Check(c.Plugins...); err != nil {
		return fmt.Errorf("Config.Plugins: %w", err)
	}
	if c.PackageCache != "" && !validName.MatchString(c.PackageCache) {
		return fmt.Errorf("Config.PackageCache: %q is not a volume's name: use letters, digits, "+
			"\"_\", \".\" and \"-\", and begin with a letter or a digit", c.PackageCache)
	}
	if c.Dir != "" && c.Dir[0] != '/' {
		return fmt.Errorf("Config.Dir: %q is not absolute: give a path that begins with /", c.Dir)
	}
	if err := environ.Check("Config.Env", c.Env); err != nil {
		return err
	}
	if err := c.checkMounts(); err != nil {
		return err
	}
	if err := c.checkPublish(); err != nil {
		return err
	}
	if err := c.checkOutward(); err != nil {
		return err
	}
	for i, entry := range c.ExtraHosts {
		name, address, _ := strings.Cut(entry, ":")
		_, err := netip.ParseAddr(address)
		if name == "" || err != nil && address != "host-gateway" {
			return fmt.Errorf("Config.ExtraHosts[%d]: %q: write name:address, with an IP address "+
				"or host-gateway", i, entry)
		}
	}
	for field, network := range map[string]string{"Config.Network": c.Network,
		"Config.PluginNetwork": c.PluginNetwork} {
		if network == string(sandbox.NetworkOpen) {
			return fmt.Errorf("%s: %q is a word of sandbox.Spec: leave it out for the "+
				"engine's default network", field, network)
		}
	}
	if c.GPUs < -1 {
		return fmt.Errorf("Config.GPUs: %d is negative: give a number, or -1 for all", c.GPUs)
	}
	if c.Memory > 0 && c.Memory < minMemory {
		return fmt.Errorf("Config.Memory: %d bytes are too few: give at least 6 MiB (%d), or "+
			"leave it out for no limit", c.Memory, minMemory)
	}
	for i, address := range c.DNS {
		if _, err := netip.ParseAddr(address); err != nil {
			return fmt.Errorf("Config.DNS[%d]: %q is not an IP address: give one such as 192.0.2.1",
				i, address)
		}
	}
	for _, limit := range []struct {
		field    string
		value    any
		negative bool
		zero     string // what 0 stands for
	}{
		{"Memory", c.Memory, c.Memory < 0, "no limit"},
		{"CPUs", c.CPUs, c.CPUs < 0, "no limit"},
		{"ShmSize", c.ShmSize, c.ShmSize < 0, "the engine's default"},
		{"StartTimeout", c.StartTimeout, c.StartTimeout < 0, "1m"},
		{"Grace", c.Grace, c.Grace < 0, "1s"},
		{"StartLimit", c.StartLimit, c.StartLimit < 0, "30s"},
	} {
		if limit.negative {
			return negativeError("Config."+limit.field, limit.value, limit.zero)
		}
	}
	return nil
}

// checkImage looks at Image, Snapshot and Platform.
func (c Config) checkImage() error {
	if err := remotebox.CheckImage("Config.Image", c.Image); err != nil {
		return err
	}
	if err := remotebox.CheckImage("Config.Snapshot", c.Snapshot); err != nil {
		return err
	}
	if c.Snapshot != "" && c.Image != "" && c.Image != c.Snapshot {
		return fmt.Errorf("Config.Image: Config.Snapshot %q takes the place of image %q: leave "+
			"one of them out", c.Snapshot, c.Image)
	}
	if c.Snapshot != "" && c.ReadOnlyRoot {
		return errors.New("Config.ReadOnlyRoot: the state of the sessions, which may be secret, " +
			"could not be removed from a box of a Snapshot: leave ReadOnlyRoot or Snapshot out")
	}
	if c.Platform == "" {
		return nil
	}
	p, err := docker.ParsePlatform(c.Platform)
	if err != nil {
		return fmt.Errorf("Config.Platform: %w", err)
	}
	if p.OS != "linux" || bin.For(p.Architecture) == nil {
		return fmt.Errorf("Config.Platform: %q: use linux/amd64 or linux/arm64", c.Platform)
	}
	return nil
}

// negativeError says that a field is negative, and what 0 stands for.
func negativeError(field string, value any, zero string) error {
	return fmt.Errorf("%s: %v is negative: 0 stands for %s", field, value, zero)
}

func checkLinger(field string, linger time.Duration) error {
	if linger != 0 && linger < time.Second {
		return fmt.Errorf("%s: %v is less than a second: leave it out for %v, or give 1s or more",
			field, linger, defaultLinger)
	}
	return nil
}

func (c Config) checkPublish() error {
	for i, port := range c.Publish {
		if port < 1 || port > 65535 {
			return fmt.Errorf("Config.Publish[%d]: %d is not a port: give one from 1 to 65535", i,
				port)
		}
	}
	if len(c.Publish) > 0 && (c.Network == "none" || c.Network == "host") {
		return fmt.Errorf("Config.Publish: the engine publishes no port on the network %q: give "+
			"Config.Network another one, or leave Publish out", c.Network)
	}
	return nil
}

func (c Config) checkOutward() error {
	switch {
	case !c.Outward:
		return nil
	case c.Network != "none":
		return fmt.Errorf("Config.Outward: on the network %q programs can go around: set "+
			"Config.Network to \"none\"", c.Network)
	case c.AllowNewPrivileges:
		return errors.New("Config.Outward: the kernel gives such programs no new privileges: " +
			"leave out Config.AllowNewPrivileges or Config.Outward")
	case len(c.DNS) > 0:
		return errors.New("Config.Outward: the box's name server is in the box: leave out " +
			"Config.DNS")
	}
	return nil
}
