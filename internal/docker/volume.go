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

// A container has boxd from a volume of its engine, read only, so that starting one copies nothing.
// There is a volume for each boxd that was ever used there; its label sandshell.boxd is the
// program's SHA-256. It stays when the last container has gone; "docker volume ls --filter
// label=sandshell.boxd" shows it, and docker volume rm removes it while no container has it. The
// next container finds it empty then, and it is filled again.
//
// A process that has CAP_SYS_ADMIN could make the volume writable for itself, and so change what
// other containers run. A container that can have such processes (Spec.OwnBoxd) gets boxd in a
// volume of its own, which goes with it.

// boxdDir is where a container has the volume, boxdPath the program in it.
const (
	boxdDir  = wire.Dir
	boxdPath = wire.Path

	boxdLabel = "sandshell.boxd"
)

// volumeOf is the name of the engine's volume that holds the program. Each program has a volume of
// its own.
func volumeOf(b *bin.Binary) string { return "sandshell-boxd-" + b.Sum[:12] + "-" + b.Arch }

// sharedMount is the mount for a container that shares boxd. The engine makes the volume if there
// is none.
func sharedMount(b *bin.Binary) mount.Mount {
	return mount.Mount{
		Type: mount.TypeVolume, Source: volumeOf(b), Target: boxdDir, ReadOnly: true,
		VolumeOptions: &mount.VolumeOptions{
			NoCopy: true, // an empty volume would get what the image has there
			Labels: map[string]string{versionLabel: remotebox.Version(), boxdLabel: b.Sum},
		},
	}
}

// ownMount is the mount for a container that does not share boxd. It is writable, so that putBoxd
// can fill it.
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
	// Busy (ETXTBSY): while the engine filled the volume it started another process, which for a
	// moment has the file open too.
	return strings.Contains(text, "no such file") || strings.Contains(text, "not found") ||
		strings.Contains(text, "text file busy")
}

// fillBoxd puts boxd into the volume of a container, unless another goroutine of this process has
// filled it meanwhile: seen is how many fills there had been before the caller found the volume
// empty. It may race with other processes, and with containers that start.
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

// fill fills the volume through a container that mounts it and never runs. That container has the
// image of the box, which is certainly on the engine.
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
		return nil // another process was faster
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

// archiveBoxd makes the archive that is unpacked into the volume. The program has a temporary name
// there, and a hard link gives it the name that containers start. So under that name the program is
// whole, and no process has it open for writing: the kernel would not start it then (ETXTBSY).
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

// fills are this process's fills of one volume. The goroutines of a program that starts many boxes
// at once take turns; the first one fills the volume, and the others find it filled.
type fills struct {
	turn chan struct{} // held by the goroutine whose turn it is
	done atomic.Int64
}

// allFills are the fills by engine and volume. It is global because every box has a client of its
// own, and boxes share volumes.
var allFills sync.Map

func (e *Engine) fills(b *bin.Binary) *fills {
	f, _ := allFills.LoadOrStore(e.Address()+" "+volumeOf(b), &fills{turn: make(chan struct{}, 1)})
	return f.(*fills)
}
