package sshbox

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sshbox/internal/wire"
)

// A container has boxd from a volume of its engine, read only, so that starting one copies nothing. There is a volume
// for each boxd that was ever used there; its label sandshell.boxd is the program's SHA-256. It stays when the last
// container has gone; "docker volume ls --filter label=sandshell.boxd" shows it, and docker volume rm removes it
// while no container has it. The next container finds it empty then, and it is filled again.
//
// A process that has CAP_SYS_ADMIN could make the volume writable for itself, and so change what other containers run. A
// container that can have such processes (Config.mounter) gets boxd in a volume of its own, which goes with it.

// boxdDir is where a container has the volume, boxdPath the program in it.
const (
	boxdDir  = wire.Dir
	boxdPath = wire.Path

	boxdLabel = "sandshell.boxd"
)

// mount is what a container is created with. The engine makes the volume if there is none.
func (b *boxdBinary) mount() mount.Mount {
	return mount.Mount{
		Type: mount.TypeVolume, Source: b.volume(), Target: boxdDir, ReadOnly: true,
		VolumeOptions: &mount.VolumeOptions{
			NoCopy: true, // an empty volume would get what the image has there
			Labels: map[string]string{"sandshell": version(), boxdLabel: b.sum},
		},
	}
}

// ownMount is what a container that does not share boxd is created with. putBoxd fills it, which needs it to be writable.
func (b *boxdBinary) ownMount() mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Target: boxdDir, VolumeOptions: &mount.VolumeOptions{NoCopy: true}}
}

// plainRuntimes are those of which it is known that they give a container no capability that it was not asked to give.
var plainRuntimes = []string{"", "runc", "crun", "runsc", "nvidia", "io.containerd.runc.v2"}

// mounter reports whether processes in the container may change its mounts: others are not to depend on these then.
func (c Config) mounter(user string) bool {
	caps := c.capabilities(user)
	return slices.Contains(caps, "ALL") || slices.Contains(caps, "CAP_SYS_ADMIN") || !slices.Contains(plainRuntimes, c.Runtime)
}

// withBoxd starts a container that has the mount: start is to start it, and is called again when the volume was found
// empty and is filled. A container whose start has failed can be started again.
func (e *engine) withBoxd(ctx context.Context, b *boxdBinary, c Config, start func(context.Context) error) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		seen := e.fills(b).done.Load()
		err := start(ctx)
		if attempt == attempts || !missingBoxd(err) {
			return err
		}
		if attempt > 1 {
			seen = math.MaxInt64 // what other goroutines did was of no help
		}
		if err := e.fillBoxd(ctx, b, c, seen); err != nil {
			return err
		}
	}
}

// missingBoxd reports whether a container did not start because its volume has no boxd. The words are those of runc
// (stat /.sandshell/boxd: no such file or directory) and crun (open executable: No such file or directory).
func missingBoxd(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	if !strings.Contains(text, boxdPath) && !strings.Contains(text, "executable") {
		return false
	}
	// Busy: the engine, filling it, has started another process just then, which for a moment has the file open too.
	return strings.Contains(text, "no such file") || strings.Contains(text, "not found") || strings.Contains(text, "text file busy")
}

// explain says what is meant by the words with which a container ended, or did not start, because its machine does
// not run boxd. Of other words it says nothing.
func (b *boxdBinary) explain(image, said string) error {
	if !strings.Contains(strings.ToLower(said), "exec format error") {
		return nil
	}
	return fmt.Errorf("image %q says that it is for linux/%s, and the engine's machine does not run programs for that (exec format error): "+
		"use an image for the machine's own architecture (Config.Platform chooses), or have the machine emulate this one (binfmt_misc with qemu)",
		image, b.arch)
}

// fillBoxd puts boxd into the volume, unless another goroutine of this process did so after there were seen fills. It
// may race with other processes, and with containers that start.
func (e *engine) fillBoxd(ctx context.Context, b *boxdBinary, c Config, seen int64) error {
	f := e.fills(b)
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("fill volume %s: %w", b.volume(), context.Cause(ctx))
	}
	defer func() { <-f.turn }()
	if f.done.Load() > seen {
		return nil
	}
	if err := e.fill(ctx, b, c); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("fill volume %s: %w", b.volume(), err)
	}
	f.done.Add(1)
	return nil
}

// fill fills the volume by way of a container that has it, and never runs. Its image is the one that the box will
// have: it is there.
func (e *engine) fill(ctx context.Context, b *boxdBinary, c Config) (err error) {
	helper := newContainer(e, Config{Image: c.Image})
	defer func() {
		if removal := helper.remove(ctx); err == nil {
			err = removal
		}
	}()
	writable := b.mount()
	writable.ReadOnly = false
	options := client.ContainerCreateOptions{
		Name:       helper.name,
		Config:     &container.Config{Image: c.Image, Entrypoint: []string{boxdPath}, Labels: helper.labels(nil)},
		HostConfig: &container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{writable}},
	}
	if c.Platform != "" {
		if options.Platform, err = parsePlatform(c.Platform); err != nil {
			return err
		}
	}
	// A creation that is cancelled can come to be after the container was looked for in vain.
	creation, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	created, err := e.ContainerCreate(creation, options)
	if err != nil {
		return helper.explainCreate(err)
	}
	helper.id = created.ID
	program, err := b.program()
	if err != nil {
		return err
	}
	if stat, err := e.ContainerStatPath(ctx, helper.id, client.ContainerStatPathOptions{Path: boxdPath}); err == nil && stat.Stat.Size == int64(len(program)) {
		return nil // another process was faster
	}
	return e.putBoxd(ctx, helper.id, program)
}

// putBoxd puts boxd into a container's volume.
func (e *engine) putBoxd(ctx context.Context, id string, program []byte) error {
	archive, err := archiveBoxd(program)
	if err != nil {
		return err
	}
	_, err = e.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: boxdDir, Content: archive})
	return err
}

// archiveBoxd makes what is unpacked into the volume. The program comes under a name of its own and is then linked to
// the one that containers start: so it appears there whole, and with nobody who writes to it, which the kernel would
// not start (ETXTBSY).
func archiveBoxd(program []byte) (io.Reader, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	own := ".boxd-" + strings.ToLower(rand.Text()[:12])
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: own, Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = w.Write(program)
	}
	if err == nil {
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: path.Base(boxdPath), Linkname: own, Mode: 0o755})
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("archive boxd: %w", err)
	}
	return &out, nil
}

// fills are those of one volume by this process. The goroutines of a program that starts many boxes at once take
// turns, and all but the first have nothing to do.
type fills struct {
	turn chan struct{} // has room for the one whose turn it is
	done atomic.Int64
}

// allFills are by engine and volume. Every box has a client of its own: what they share is shared by the process.
var allFills sync.Map

func (e *engine) fills(b *boxdBinary) *fills {
	f, _ := allFills.LoadOrStore(e.DaemonHost()+" "+b.volume(), &fills{turn: make(chan struct{}, 1)})
	return f.(*fills)
}
