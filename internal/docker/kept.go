package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// An image that is kept for later boxes is named keptRepository:KEY, where KEY is a digest of what
// the image is made of. A program that finds no such image makes it, in a container whose name has
// KEY. Only one container can have that name, so other programs wait until that container is gone.

const keptRepository = "sandshell-plugins"

// The labels of such an image.
const (
	keptLabel      = "sandshell.plugins" // KEY
	keptBaseLabel  = "sandshell.base"    // the base image's id
	keptImageLabel = "sandshell.image"   // the base image's name
)

// CacheDir is where a container that makes such an image has the volume for downloads. cacheLabel
// is the volume's label.
const (
	CacheDir   = "/var/cache/sandshell"
	cacheLabel = "sandshell.cache"
)

// A Kept is an image that is kept for later boxes.
type Kept struct {
	Key      string
	Base     *Image
	BaseName string // the base image's name
	// Make creates a container of that name and makes the image from it, with Commit. It returns
	// ErrTaken if there is such a container.
	Make      func(ctx context.Context, container string) error
	Elsewhere func() error // called when another program is making the image
	Logger    *slog.Logger
}

// ErrTaken is what Kept.Make returns if a container of that name exists already.
var ErrTaken = errors.New("another program makes it")

// Name returns the image's name.
func (k *Kept) Name() string { return keptRepository + ":" + k.Key }

// Keep calls Make if the image is not there. Concurrent calls, also in other programs, make the
// image once.
func (e *Engine) Keep(ctx context.Context, k *Kept) error {
	for {
		_, err := e.ImageInspect(ctx, k.Name())
		if err == nil {
			return nil
		}
		if !errdefs.IsNotFound(err) {
			return fmt.Errorf("image %q: %w", k.Name(), err)
		}
		if err := e.makeOrWait(ctx, k); err != nil {
			return err
		}
	}
}

// A making is a call of Make in this process. Other calls for the same image wait for it and share
// its error. Otherwise a hundred boxes would try a failing setup one after the other.
type making struct {
	done chan struct{}
	err  error
}

// makings has the makings that are under way, by engine and key. It is global because each box has
// an Engine of its own.
var makings = struct {
	sync.Mutex
	of map[string]*making
}{of: map[string]*making{}}

// makeOrWait makes the image, or waits until another call or program has made it, failed or given
// up. If the image is not there after that, the caller calls makeOrWait again.
func (e *Engine) makeOrWait(ctx context.Context, k *Kept) error {
	id := e.Address() + " " + k.Key
	makings.Lock()
	m, underWay := makings.of[id]
	if !underWay {
		m = &making{done: make(chan struct{})}
		makings.of[id] = m
	}
	makings.Unlock()
	if underWay {
		select {
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		case <-m.done:
			return m.err
		}
	}
	name := "sandshell-setup-" + k.Key
	err := k.Make(ctx, name)
	if errors.Is(err, ErrTaken) {
		if err = k.Elsewhere(); err == nil {
			err = e.waitFor(ctx, k, name)
		}
	}
	// After the end of this call's ctx, or a panic of its Progress, the other calls try themselves.
	var panicked *guard.PanicError
	if ctx.Err() == nil && !errors.As(err, &panicked) {
		m.err = err
	}
	makings.Lock()
	delete(makings.of, id)
	makings.Unlock()
	close(m.done)
	return err
}

// waitFor waits until the image is there, or another program's container is gone.
func (e *Engine) waitFor(ctx context.Context, k *Kept, name string) error {
	for {
		if _, err := e.ImageInspect(ctx, k.Name()); err == nil {
			return nil
		}
		_, err := e.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		if errdefs.IsNotFound(err) {
			return nil
		}
		if err == nil {
			_, err = e.Reap(ctx, k.Logger) // an ended program may have left the container
		}
		if ctx.Err() != nil {
			const what = "wait for container %s, in which another program sets up the plugins: %w"
			return fmt.Errorf(what, name, ctxerr.Of(ctx))
		}
		// Podman fails to list containers if one is removed at that moment.
		if err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Commit makes the image from a container. The engine takes from the container what the image's
// configuration does not set. So Commit sets user, directory, main process and labels, which in the
// container are the box's.
func (e *Engine) Commit(ctx context.Context, k *Kept, c *Container) error {
	config := &container.Config{
		User: k.Base.User, WorkingDir: k.Base.WorkDir,
		Entrypoint: append([]string{}, k.Base.Entrypoint...), Cmd: k.Base.Command,
		Labels: map[string]string{keptLabel: k.Key, keptBaseLabel: k.Base.ID,
			keptImageLabel: k.BaseName},
	}
	for label := range c.labels(nil) {
		if label != remotebox.VersionLabel {
			config.Labels[label] = ""
		}
	}
	if err := e.CommitAs(ctx, c.ID, k.Name(), "sandshell: "+k.BaseName+" with plugins",
		config); err != nil {
		return fmt.Errorf("keep the image with the plugins: %w", err)
	}
	return nil
}

// CommitAs makes an image from a container. The engine takes from the container what the
// configuration does not set.
func (e *Engine) CommitAs(ctx context.Context, id, name, comment string,
	config *container.Config) error {
	o := client.ContainerCommitOptions{Reference: name, Comment: comment, Config: config}
	podman, err := e.isPodman(ctx)
	if err != nil {
		return err
	}
	if podman {
		o.Changes = changes(config)
	}
	_, err = e.ContainerCommit(ctx, id, o)
	return err
}

// isPodman reports whether the engine is Podman, which speaks Docker's API.
func (e *Engine) isPodman(ctx context.Context) (bool, error) {
	version, err := e.ServerVersion(ctx, client.ServerVersionOptions{})
	return slices.ContainsFunc(version.Components, func(c system.ComponentVersion) bool {
		return c.Name == "Podman Engine"
	}), err
}

// changes returns an image's configuration as Dockerfile instructions, because Podman ignores
// ContainerCommitOptions.Config. Instructions cannot say that a value is empty, except for the main
// process. Docker would take an empty main process in this form from the container.
func changes(c *container.Config) []string {
	list := func(of []string) string {
		text, _ := json.Marshal(append([]string{}, of...)) // [] instead of null
		return string(text)
	}
	changes := []string{"ENTRYPOINT " + list(c.Entrypoint), "CMD " + list(c.Cmd)}
	if c.User != "" {
		changes = append(changes, "USER "+c.User)
	}
	if c.WorkingDir != "" {
		changes = append(changes, "WORKDIR "+c.WorkingDir)
	}
	for _, kv := range c.Env {
		name, value, _ := strings.Cut(kv, "=")
		// The engine replaces $NAME.
		value = strings.ReplaceAll(strconv.Quote(value), "$", `\$`)
		changes = append(changes, "ENV "+name+"="+value)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		changes = append(changes, fmt.Sprintf("LABEL %q=%q", name, c.Labels[name]))
	}
	return changes
}

// CacheMount returns the mount of the volume for what setups download. FillCache makes the
// directories in it.
func (k *Kept) CacheMount(volume string) mount.Mount {
	return mount.Mount{
		Type: mount.TypeVolume, Source: volume, Target: CacheDir,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: map[string]string{
			remotebox.VersionLabel: remotebox.Version(), cacheLabel: k.Base.ID,
			keptImageLabel: k.BaseName,
		}},
	}
}

// FillCache makes the directories of a new cache. Any user may write to them, because a setup may
// run as any user.
func (e *Engine) FillCache(ctx context.Context, c *Container) error {
	var cache bytes.Buffer
	w := tar.NewWriter(&cache)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "pip/", Mode: 0o1777})
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		_, err = e.CopyToContainer(ctx, c.ID, client.CopyToContainerOptions{
			DestinationPath: CacheDir, Content: &cache})
	}
	if err != nil {
		return fmt.Errorf("prepare the package cache: %w", err)
	}
	return nil
}
