package sshbox

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// A box with plugins starts from an image that has them, keptRepository:KEY, where KEY says of what it was made. Who finds none makes
// it: sets the plugins up in a box of its own and commits that. The box's name holds KEY: the engine lets only one have it, of whatever
// program, and others wait until that has come to its end.

const keptRepository = "sandshell-plugins"

// The labels of such an image.
const (
	keptLabel      = "sandshell.plugins" // KEY
	keptBaseLabel  = "sandshell.base"    // the base image's id
	keptImageLabel = "sandshell.image"   // and what it was called
)

// cacheDir is where a box in which plugins are set up has the volume for downloads; cacheLabel is that of the volume.
const (
	cacheDir   = "/var/cache/sandshell"
	cacheLabel = "sandshell.cache"
)

// newWithPlugins makes a box that has c.Plugins.
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
			continue // somebody has removed it meanwhile
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

// keptImage returns the name of an image that has the plugins.
func keptImage(ctx context.Context, c Config) (string, error) {
	e, err := openEngine(ctx, c.Docker)
	if err != nil {
		return "", err
	}
	defer e.close()
	base, err := e.image(ctx, c)
	if err != nil {
		return "", err
	}
	k := &kept{engine: e, config: c, base: base}
	if k.key, err = keyOf(base, c); err != nil {
		return "", err
	}
	k.name = keptRepository + ":" + k.key
	for {
		_, err := e.ImageInspect(ctx, k.name)
		if err == nil {
			return k.name, nil
		}
		if !errdefs.IsNotFound(err) {
			return "", fmt.Errorf("image %q: %w", k.name, err)
		}
		if err := k.makeOrWait(ctx); err != nil {
			return "", err
		}
	}
}

// keyOf identifies all that an image with plugins is made of.
func keyOf(base *image, c Config) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "1 %q %q\n", base.id, c.user(base))
	var lines []string
	for _, p := range c.Plugins {
		digest, err := p.Digest()
		if err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("%q %s %q\n", p.Name, digest, p.Requires))
	}
	slices.Sort(lines) // the order in which they are given does not count
	io.WriteString(sum, strings.Join(lines, ""))
	return hex.EncodeToString(sum.Sum(nil))[:32], nil
}

// A kept is an image with plugins that is to be.
type kept struct {
	engine    *engine
	config    Config
	base      *image
	key, name string
}

// A making is under way in this process. Those who want the same wait for it, and share its error: a setup that fails is not tried by
// each of a hundred boxes in turn.
type making struct {
	done chan struct{}
	err  error
}

var makings = struct {
	sync.Mutex
	of map[string]*making
}{of: map[string]*making{}}

// makeOrWait makes the image, or waits until another has, or has failed at it or given up. Then the image is there or it is to be called again.
func (k *kept) makeOrWait(ctx context.Context) error {
	id := k.engine.DaemonHost() + " " + k.key
	makings.Lock()
	m, others := makings.of[id]
	if !others {
		m = &making{done: make(chan struct{})}
		makings.of[id] = m
	}
	makings.Unlock()
	if others {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.done:
			return m.err
		}
	}
	err := k.make(ctx)
	if ctx.Err() == nil { // else it is this call's own affair
		m.err = err
	}
	makings.Lock()
	delete(makings.of, id)
	makings.Unlock()
	close(m.done)
	return err
}

// make makes the image, or waits while another program does.
func (k *kept) make(ctx context.Context) error {
	c, name := k.setupConfig(), "sandshell-setup-"+k.key
	c.Name = name
	var names []string
	for _, p := range c.Plugins {
		names = append(names, p.Name)
	}
	k.progress("Setting up " + strings.Join(names, ", "))
	box, err := newBare(ctx, c)
	if errdefs.IsConflict(err) {
		k.progress("Another program sets up " + strings.Join(names, ", "))
		return k.wait(ctx, name)
	}
	if err != nil {
		return fmt.Errorf("make image %q with plugins: %w", k.config.Image, err) // the container's is but the id
	}
	err = k.fill(ctx, box)
	return errors.Join(err, box.Close())
}

// setupConfig is that of the box in which the plugins are set up.
func (k *kept) setupConfig() Config {
	c := k.config
	c.Image, c.Pull = k.base.id, PullNever
	c.WorkDir, c.Env, c.ReadOnlyRoot, c.CapDrop, c.Entrypoint, c.Keep, c.Hostname, c.Labels = "", nil, false, nil, false, false, "", nil
	if c.PluginNetwork != "" {
		c.Network = c.PluginNetwork
	}
	if c.PackageCache == "" {
		_, id, _ := strings.Cut(k.base.id, ":")
		c.PackageCache = "sandshell-cache-" + id[:min(12, len(id))]
	}
	c.Mounts = nil
	c.own = []mount.Mount{{
		Type: mount.TypeVolume, Source: c.PackageCache, Target: cacheDir,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: map[string]string{
			"sandshell": version(), cacheLabel: k.base.id, keptImageLabel: k.config.Image,
		}},
	}}
	return c
}

// fill sets the plugins up in the box and makes the image of it.
func (k *kept) fill(ctx context.Context, box *DockerSSHBox) error {
	cache, err := archiveCache()
	if err != nil {
		return err
	}
	options := client.CopyToContainerOptions{DestinationPath: cacheDir, Content: cache}
	if _, err := k.engine.CopyToContainer(ctx, box.ContainerID(), options); err != nil {
		return fmt.Errorf("prepare the package cache: %w", err)
	}
	box.AddEnv("SANDSHELL_CACHE="+cacheDir, "PIP_CACHE_DIR="+cacheDir+"/pip")
	box.AddEnv(k.config.proxies()...)
	if err := box.InitPlugins(ctx, k.config.Plugins...); err != nil {
		return err
	}
	k.progress("Keeping the image")
	return k.commit(ctx, box)
}

// archiveCache makes what a cache begins with: who sets up may be any user.
func archiveCache() (*bytes.Buffer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "pip/", Mode: 0o1777})
	if err == nil {
		err = w.Close()
	}
	return &out, err
}

// proxies are the variables of Env that setups get: those that docker build knows, which do not change what is set up either.
func (c Config) proxies() []string {
	return slices.DeleteFunc(c.environ(), func(kv string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(kv), "=")
		return !slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"}, name)
	})
}

// commit makes the image. What the engine is not told it takes from the container: its main process and labels are not to be the image's.
func (k *kept) commit(ctx context.Context, box *DockerSSHBox) error {
	config := &container.Config{
		User: k.base.user, WorkingDir: k.base.workDir,
		Entrypoint: append([]string{}, k.base.entrypoint...), Cmd: k.base.command,
		Labels: map[string]string{keptLabel: k.key, keptBaseLabel: k.base.id, keptImageLabel: k.config.Image},
	}
	if config.User == "" && k.config.Server == OpenSSH { // the sshd's would be the container's
		config.User = "root"
	}
	for label := range box.container.labels(nil) {
		if label != "sandshell" {
			config.Labels[label] = ""
		}
	}
	_, err := k.engine.ContainerCommit(ctx, box.ContainerID(), client.ContainerCommitOptions{
		Reference: k.name, Comment: "sandshell: " + k.config.Image + " with plugins", Config: config,
	})
	if err != nil {
		return fmt.Errorf("keep the image with the plugins: %w", err)
	}
	return nil
}

// wait waits until a container, another program's, has gone, or the image is there.
func (k *kept) wait(ctx context.Context, name string) error {
	for {
		if _, err := k.engine.ImageInspect(ctx, k.name); err == nil {
			return nil
		}
		_, err := k.engine.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		if errdefs.IsNotFound(err) {
			return nil
		}
		if err == nil {
			_, err = k.engine.reap(ctx, k.config.Logger) // should it be what is left of one
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for container %s, in which another program sets up the plugins: %w", name, ctx.Err())
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (k *kept) progress(status string) {
	if k.config.Progress != nil {
		k.config.Progress(PullProgress{Image: k.name, Status: status})
	}
}
