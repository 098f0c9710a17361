package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// A container has boxd in a read-only volume of its engine, so that a start copies nothing. There
// is one volume for each version of boxd. Its label sandshell.boxd is the program's SHA-256. The
// volume stays when the last container is gone: "docker volume ls --filter label=sandshell.boxd"
// shows it, and docker volume rm removes it. The next container then finds a new, empty volume, and
// fills it.
//
// A process with CAP_SYS_ADMIN could make the volume writable and so change what other containers
// run. A container that can have such processes (Spec.OwnBoxd) gets boxd in a volume of its own,
// which is removed with it.

// boxdDir is where a container has the volume, boxdPath the program in it.
const (
	boxdDir  = wire.Dir
	boxdPath = wire.Path

	boxdLabel = "sandshell.boxd"
)

// volumeOf returns the name of the engine's volume that holds a boxd.
func volumeOf(b *bin.Binary) string { return "sandshell-boxd-" + b.Sum[:12] + "-" + b.Arch }

// sharedMount returns the mount for a container that shares boxd. The engine makes the volume if
// there is none.
func sharedMount(b *bin.Binary) mount.Mount {
	return mount.Mount{
		Type: mount.TypeVolume, Source: volumeOf(b), Target: boxdDir, ReadOnly: true,
		VolumeOptions: &mount.VolumeOptions{
			NoCopy: true, // an empty volume must not get what the image has there
			Labels: map[string]string{remotebox.VersionLabel: remotebox.Version(),
				boxdLabel: b.Sum},
		},
	}
}

// ownMount returns the mount for a container that does not share boxd. It is writable, so that
// putBoxd can fill it.
func ownMount() mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Target: boxdDir,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true}}
}

// missingBoxd reports whether a container did not start because its volume has no boxd. The words
// are those of runc (stat /.sandshell/boxd: no such file or directory) and crun (open executable:
// No such file or directory).
func missingBoxd(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	if !strings.Contains(text, boxdPath) && !strings.Contains(text, "executable") {
		return false
	}
	// ETXTBSY ("text file busy"): the engine started another process while it filled the volume.
	// For a moment, that process has the file open too.
	return strings.Contains(text, "no such file") || strings.Contains(text, "not found") ||
		strings.Contains(text, "text file busy")
}

// fillBoxd puts boxd into the volume of a container, unless another goroutine of this process has
// filled it since. seen is the number of fills before the caller found the volume empty. fillBoxd
// may run at the same time in other processes, and while containers start.
func (e *Engine) fillBoxd(ctx context.Context, c *Container, seen int64) error {
	f := e.fills(c.Boxd)
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("fill volume %s: %w", volumeOf(c.Boxd), ctxerr.Of(ctx))
	}
	defer func() { <-f.turn }()
	if f.done.Load() > seen {
		return nil
	}
	if err := e.fill(ctx, c); err != nil {
		if ctx.Err() != nil {
			err = ctxerr.Of(ctx)
		}
		return fmt.Errorf("fill volume %s: %w", volumeOf(c.Boxd), err)
	}
	f.done.Add(1)
	return nil
}

// fill fills the volume through a container that mounts it and never runs. That container is made
// from the box's image, which the engine has.
func (e *Engine) fill(ctx context.Context, c *Container) (err error) {
	helper := e.newContainer(Spec{Boxd: c.Boxd})
	defer func() {
		if removal := helper.Remove(ctx); err == nil {
			err = removal
		}
	}()
	writable := sharedMount(c.Boxd)
	writable.ReadOnly = false
	// The engine may finish a cancelled creation after Remove has found nothing to remove.
	creation, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	created, err := e.ContainerCreate(creation, client.ContainerCreateOptions{
		Name: helper.Name, Platform: c.Platform,
		Config: &container.Config{Image: c.Config.Image, Entrypoint: []string{boxdPath},
			Labels: helper.labels(nil)},
		HostConfig: &container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{writable}},
	})
	if err != nil {
		return helper.explainCreate(err)
	}
	helper.ID = created.ID
	program, err := c.Boxd.Program()
	if err != nil {
		return err
	}
	if stat, err := e.ContainerStatPath(ctx, helper.ID,
		client.ContainerStatPathOptions{Path: boxdPath}); err == nil &&
		stat.Stat.Size == int64(len(program)) {
		return nil // another process has filled it
	}
	return e.putBoxd(ctx, helper.ID, program)
}

// putBoxd puts boxd into a container's volume.
func (e *Engine) putBoxd(ctx context.Context, id string, program []byte) error {
	archive, err := archiveBoxd(program)
	if err != nil {
		return err
	}
	_, err = e.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: boxdDir,
		Content: archive})
	return err
}

// archiveBoxd makes the archive that the engine unpacks into the volume. The program gets a
// temporary name, and a hard link gives it the name that containers start. So under that name the
// program is always whole, and no process has it open for writing, which would keep the kernel from
// starting it (ETXTBSY).
func archiveBoxd(program []byte) (io.Reader, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	own := ".boxd-" + strings.ToLower(rand.Text()[:12])
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: own, Mode: 0o755,
		Size: int64(len(program))})
	if err == nil {
		_, err = w.Write(program)
	}
	if err == nil {
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: path.Base(boxdPath),
			Linkname: own, Mode: 0o755})
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("archive boxd: %w", err)
	}
	return &out, nil
}

// fills counts this process's fills of one volume. If goroutines start many boxes at once, they
// take turns: the first one fills the volume, and the others find it filled.
type fills struct {
	turn chan struct{} // a lock that ctx can end: full while a goroutine has it
	done atomic.Int64
}

// allFills has the fills by engine and volume. It is global because each box has an Engine of its
// own, and boxes share volumes.
var allFills sync.Map

func (e *Engine) fills(b *bin.Binary) *fills {
	f, _ := allFills.LoadOrStore(e.Address()+" "+volumeOf(b), &fills{turn: make(chan struct{}, 1)})
	return f.(*fills)
}
