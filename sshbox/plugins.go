package sshbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/mount"
	"github.com/sandshell/sandshell/internal/docker"
)

// newWithPlugins makes a box with c.Plugins from an image in which they are set up. If there is no
// such image, newWithPlugins makes the image first.
func newWithPlugins(ctx context.Context, c Config) (*DockerSSHBox, error) {
	for attempt := 1; ; attempt++ {
		kept, err := keptImage(ctx, c)
		if err != nil {
			return nil, err
		}
		from := c
		from.Image, from.Pull = kept, PullNever
		box, err := newBare(ctx, from)
		if errdefs.IsNotFound(err) && attempt < 3 {
			continue // another program has removed the image since
		}
		if err != nil {
			return nil, err
		}
		if err := box.InitPlugins(ctx, c.Plugins...); err != nil {
			return nil, errors.Join(err, box.Close())
		}
		return box, nil
	}
}

// keptImage returns the name of an image with the plugins. It makes the image if there is none.
func keptImage(ctx context.Context, c Config) (string, error) {
	e, err := openEngine(ctx, "Config.Docker", c.Docker)
	if err != nil {
		return "", err
	}
	defer e.Close()
	base, err := e.Image(ctx, c.source())
	if err != nil {
		return "", err
	}
	key, err := keyOf(base, c)
	if err != nil {
		return "", err
	}
	s := &setup{config: c, engine: e}
	s.kept = docker.Kept{
		Key: key, Base: base, BaseName: c.Image, Make: s.make, Logger: c.Logger,
		Elsewhere: func() error { return s.progress("Another program sets up " + s.names()) },
	}
	return s.kept.Name(), e.Keep(ctx, &s.kept)
}

// keyOf returns a digest of everything that an image with plugins is made of.
func keyOf(base *docker.Image, c Config) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "1 %q %q\n", base.ID, c.user(base))
	var lines []string
	for _, p := range c.Plugins {
		digest, err := p.Digest()
		if err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("%q %s %q\n", p.Name, digest, p.Requires))
	}
	slices.Sort(lines) // the order of c.Plugins does not matter
	io.WriteString(sum, strings.Join(lines, ""))
	return hex.EncodeToString(sum.Sum(nil))[:32], nil
}

// A setup makes the image with the plugins of a Config.
type setup struct {
	config Config
	engine *docker.Engine
	kept   docker.Kept
}

// make implements docker.Kept.Make. It sets the plugins up in a box of that name, and makes the
// image from it.
func (s *setup) make(ctx context.Context, name string) error {
	if err := s.progress("Setting up " + s.names()); err != nil {
		return err
	}
	box, err := newBare(ctx, s.boxConfig(name))
	if errdefs.IsConflict(err) {
		return docker.ErrTaken
	}
	if err != nil {
		// The error's own text names the image by its id only.
		return fmt.Errorf("make image %q with plugins: %w", s.config.Image, err)
	}
	return errors.Join(s.fill(ctx, box), box.Close())
}

// boxConfig returns the Config of the box in which the plugins are set up.
func (s *setup) boxConfig(name string) Config {
	c := s.config
	c.Name, c.Image, c.Pull = name, s.kept.Base.ID, PullNever
	c.Dir, c.Env, c.ReadOnlyRoot, c.CapDrop, c.Entrypoint, c.Keep, c.Hostname, c.Labels = "", nil,
		false, nil, false, false, "", nil
	c.Publish, c.Outward = nil, false
	if c.PluginNetwork != "" {
		c.Network = c.PluginNetwork
	}
	if c.PackageCache == "" {
		_, id, _ := strings.Cut(s.kept.Base.ID, ":")
		c.PackageCache = "sandshell-cache-" + id[:min(12, len(id))]
	}
	c.Mounts = nil
	c.own = []mount.Mount{s.kept.CacheMount(c.PackageCache)}
	return c
}

func (s *setup) fill(ctx context.Context, box *DockerSSHBox) error {
	if err := s.engine.FillCache(ctx, box.host.container); err != nil {
		return err
	}
	box.AddEnv("SANDSHELL_CACHE="+docker.CacheDir, "PIP_CACHE_DIR="+docker.CacheDir+"/pip")
	box.AddEnv(s.config.proxies()...)
	if err := box.InitPlugins(ctx, s.config.Plugins...); err != nil {
		return err
	}
	if err := s.progress("Keeping the image"); err != nil {
		return err
	}
	return s.engine.Commit(ctx, &s.kept, box.host.container)
}

// proxies returns the variables of Env that setups get. They are those that docker build passes on
// too, and do not change what is set up.
func (c Config) proxies() []string {
	return slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(kv), "=")
		return !slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY",
			"NO_PROXY"}, name)
	})
}

func (s *setup) names() string {
	var names []string
	for _, p := range s.config.Plugins {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

func (s *setup) progress(status string) error {
	return s.config.progress(PullProgress{Image: s.kept.Name(), Status: status})
}
