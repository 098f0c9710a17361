package sshbox

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/moby/api/types/mount"
	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// A Mount is a directory or file that a container has from elsewhere.
type Mount struct {
	Type MountType // default: Bind
	// Source is a path on the engine's machine (Bind), which has to exist, or the name of a volume
	// (Volume), which is made if it does not exist; "" is a volume of its own, removed with the
	// container.
	Source string
	// Target is the absolute path in the container.
	Target   string
	ReadOnly bool
	// Size limits a Tmpfs, in bytes. Default: none but the container's memory.
	Size int64
}

// A MountType is a kind of mount.
type MountType string

const (
	Bind   MountType = "bind"   // a path of the engine's machine
	Volume MountType = "volume" // one of the engine's volumes
	Tmpfs  MountType = "tmpfs"  // memory
)

// mounts translates the mounts and adds the container's own.
func (c Config) mounts(engine string) ([]mount.Mount, map[string]string, error) {
	var mounts []mount.Mount
	taken := map[string]bool{}
	for _, m := range c.Mounts {
		if m.Type == "" {
			m.Type = Bind
		}
		fail := func(format string, args ...any) error {
			return fmt.Errorf("mount %q at %q: %s", m.Source, m.Target,
				fmt.Sprintf(format, args...))
		}
		target := path.Clean(m.Target)
		switch {
		case !path.IsAbs(m.Target) || target == "/":
			return nil, nil, fail("the target has to be an absolute path, and not /")
		case within(target, wire.Dir):
			return nil, nil, fail("%s is the sandbox's own", target)
		case taken[target]:
			return nil, nil, fail("there are two mounts with that target")
		}
		taken[target] = true
		to := mount.Mount{Type: mount.Type(m.Type), Source: m.Source, Target: target,
			ReadOnly: m.ReadOnly}
		switch m.Type {
		case Bind:
			if !path.IsAbs(m.Source) && !filepath.IsAbs(m.Source) {
				return nil, nil, fail("the source has to be an absolute path on the engine's " +
					"machine; for a volume set Type to Volume")
			}
			if socket := exposes(m.Source, engine); socket != "" {
				return nil, nil, fail("the engine's socket %s is in it: who can write to that is "+
					"root on the engine's machine, "+
					"and the sandbox is none. Mount what is needed of it, and give the sandbox "+
					"another engine to talk to", socket)
			}
		case Volume:
		case Tmpfs:
			if m.Source != "" {
				return nil, nil, fail("a tmpfs has no source")
			}
			to.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: m.Size, Mode: 0o1777}
		default:
			return nil, nil, fail("there is no type %q: it can be Bind, Volume or Tmpfs", m.Type)
		}
		mounts = append(mounts, to)
	}
	tmpfs := map[string]string{}
	if c.ReadOnlyRoot {
		if !taken["/tmp"] {
			tmpfs["/tmp"] = "rw,exec,nosuid,nodev,mode=1777"
		}
	}
	return mounts, tmpfs, nil
}

// exposes returns the engine's socket that is reached by way of source, if any is.
func exposes(source, engine string) string {
	sockets := []string{"/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock",
		"/run/containerd/containerd.sock"}
	if socket, ok := strings.CutPrefix(engine, "unix://"); ok {
		sockets = append(sockets, socket)
	}
	sources := []string{path.Clean(source)}
	// if the engine's machine is this one
	if real, err := filepath.EvalSymlinks(source); err == nil {
		sources = append(sources, real)
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
