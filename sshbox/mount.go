package sshbox

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/moby/api/types/mount"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/sandbox"
)

// A Mount is a directory or a file that a container has in addition to its image. The place's
// machine is the engine's.
type Mount = sandbox.Mount

// A MountType is a kind of mount.
type MountType = sandbox.MountType

// The kinds of mounts.
const (
	Bind   = sandbox.Bind   // a path on the engine's machine
	Volume = sandbox.Volume // one of the engine's volumes
	Tmpfs  = sandbox.Tmpfs  // memory
)

// checkMounts returns an error that names the first field of Mounts that is wrong.
func (c Config) checkMounts() error {
	taken := map[string]int{}
	for i, m := range c.Mounts {
		fail := func(field, format string, args ...any) error {
			return fmt.Errorf("Config.Mounts[%d].%s: %s", i, field, fmt.Sprintf(format, args...))
		}
		target := path.Clean(m.Target)
		other, twice := taken[target]
		switch {
		case !path.IsAbs(m.Target) || target == "/":
			return fail("Target", "%q is not an absolute path below /: give one", m.Target)
		case within(target, wire.Dir):
			return fail("Target", "%q is in %s, where boxd is: choose another directory", m.Target,
				wire.Dir)
		case twice:
			return fail("Target", "%q is the Target of Mounts[%d] too: choose another directory",
				m.Target, other)
		}
		taken[target] = i
		switch m.Type {
		case "", Bind:
			if !path.IsAbs(m.Source) && !filepath.IsAbs(m.Source) {
				return fail("Source", "%q is not absolute: give a path on the engine's machine, "+
					"or set Type to Volume", m.Source)
			}
		case Volume:
		case Tmpfs:
			if m.Source != "" {
				return fail("Source", "%q is set, and a Tmpfs has no source: leave it out",
					m.Source)
			}
		default:
			return fail("Type", "%q is no type: use Bind, Volume or Tmpfs", m.Type)
		}
		if m.Size < 0 {
			return fail("Size", "%d is negative: leave it out for no limit, or give a positive "+
				"number", m.Size)
		}
	}
	return nil
}

// mounts translates Mounts, for the engine at an address. It refuses the engine's socket.
func (c Config) mounts(engine string) ([]mount.Mount, error) {
	var mounts []mount.Mount
	for i, m := range c.Mounts {
		if m.Type == "" {
			m.Type = Bind
		}
		to := mount.Mount{Type: mount.Type(m.Type), Source: m.Source, Target: path.Clean(m.Target),
			ReadOnly: m.ReadOnly}
		switch m.Type {
		case Bind:
			if socket := exposedSocket(m.Source, engine); socket != "" {
				return nil, fmt.Errorf("Config.Mounts[%d].Source: %q holds the engine's socket "+
					"%s, and who can write to that is root on the engine's machine: mount only "+
					"what the box needs, and give it another engine to talk to", i, m.Source,
					socket)
			}
		case Tmpfs:
			to.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: m.Size, Mode: 0o1777}
		}
		mounts = append(mounts, to)
	}
	return mounts, nil
}

// tmpfs returns what the engine mounts beside Mounts: with ReadOnlyRoot, a /tmp that can be
// written.
func (c Config) tmpfs() map[string]string {
	tmpfs := map[string]string{}
	if !c.ReadOnlyRoot {
		return tmpfs
	}
	for _, m := range c.Mounts {
		if path.Clean(m.Target) == "/tmp" {
			return tmpfs
		}
	}
	tmpfs["/tmp"] = "rw,exec,nosuid,nodev,mode=1777"
	return tmpfs
}

// exposedSocket returns the engine's socket that can be reached through source; "" if none can.
func exposedSocket(source, engine string) string {
	sockets := []string{"/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock",
		"/run/containerd/containerd.sock"}
	if socket, ok := strings.CutPrefix(engine, "unix://"); ok {
		sockets = append(sockets, socket)
	}
	sources := []string{path.Clean(source)}
	// If the engine's machine is this one, a link may lead to the socket.
	if resolved, err := filepath.EvalSymlinks(source); err == nil {
		sources = append(sources, resolved)
	}
	for _, socket := range sockets {
		for _, s := range sources {
			if within(socket, s) {
				return socket
			}
		}
	}
	return ""
}

// within reports whether a path is dir or below it.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}
