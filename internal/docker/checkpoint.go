package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// gVisor can write down all that runs in a container, and its memory: a checkpoint. Other
// containers can start from it. The engine keeps a checkpoint in the directory of the container
// that it was made of, and starts a container only from a checkpoint in that container's own
// directory (moby, daemon/checkpoint.go). So a checkpoint that is part of a snapshot is in the
// directory of another container, its keeper, which never runs. The keeper also mounts the
// directory in which all containers have theirs. The engine unpacks archives into a container that
// does not run, with hard links if the archive has some. That is how a checkpoint gets into its
// keeper, and from there into the containers that are to start: by the engine's API alone, and
// without a copy.

const (
	// checkpointLabel has a Checkpoint, as JSON.
	checkpointLabel = "sandshell.checkpoint"
	// keeperLabel has the tag of the snapshot whose checkpoint the container keeps, and
	// keeperOfLabel the id of the container that the checkpoint is made of.
	keeperLabel   = "sandshell.keeper"
	keeperOfLabel = "sandshell.keeper-of"

	// containersDir is where a keeper has the directories of all containers.
	containersDir = "/containers"
	// startCheckpoint is the name of the checkpoint from which a container starts.
	startCheckpoint = "sandshell"
)

// checkpointFiles are the files that runsc makes (pkg/sentry/state/checkpointfiles in gVisor). The
// first one is always there.
var checkpointFiles = []string{"checkpoint.img", "pages_meta.img", "pages.img"}

// A Checkpoint says how to start a container from the checkpoint of a snapshot. It is in a label of
// the snapshot, so nothing in it is secret.
type Checkpoint struct {
	Runtime string
	Args    []string // of the container that it was made of
	Boxd    string   // the checksum of its boxd
	Files   []string
	Size    int64 // of the files, in bytes

	key string // of the snapshot
}

// readCheckpoint returns what the labels of a snapshot say.
func readCheckpoint(labels map[string]string) (*Checkpoint, error) {
	text := labels[checkpointLabel]
	if text == "" {
		return nil, nil
	}
	c := &Checkpoint{key: labels[snapshotLabel]}
	if err := json.Unmarshal([]byte(text), c); err != nil {
		return nil, fmt.Errorf("snapshot %s: its label %s: %w", snapshotName(labels),
			checkpointLabel, err)
	}
	return c, nil
}

// IsGVisor reports whether a runtime is gVisor's, by its name on the engine and its program.
func IsGVisor(runtime, program string) bool {
	return strings.Contains(runtime, "runsc") || strings.Contains(program, "runsc") ||
		strings.Contains(runtime, "gvisor")
}

// CanCheckpoint reports whether Snapshot of a container with its memory can work. Only gVisor's
// runtime can. If it is gVisor's and cannot, the error is errors.ErrUnsupported, and says what to
// do.
func (e *Engine) CanCheckpoint(ctx context.Context, c *container.InspectResponse) (bool, error) {
	if c.HostConfig == nil || c.HostConfig.Runtime == plainRuntime {
		return false, nil
	}
	info, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return false, fmt.Errorf("ask the engine what it can do: %w", err)
	}
	runtime := c.HostConfig.Runtime
	switch {
	case !IsGVisor(runtime, info.Info.Runtimes[runtime].Path):
		return false, nil
	case !info.Info.ExperimentalBuild:
		return false, fmt.Errorf("%w: a snapshot would have the programs too if dockerd were "+
			"started with --experimental", errors.ErrUnsupported)
	case c.Config.Labels[boxdLabel] == "":
		return false, fmt.Errorf("%w: an earlier version of sandshell has made the box: a "+
			"snapshot of a new box has the programs too", errors.ErrUnsupported)
	}
	return true, nil
}

// SnapshotAll makes an image of a box's files, and a checkpoint of all that runs in it. The box is
// paused meanwhile, so both are of one moment. If the runtime makes no checkpoint, the error is
// errors.ErrUnsupported.
func (e *Engine) SnapshotAll(ctx context.Context, c *container.InspectResponse,
	temporary bool) (s *Snapshot, err error) {
	labels, err := e.snapshotLabels(ctx, c, temporary)
	if err != nil {
		return nil, err
	}
	// The engine may take half a second to say all that has changed, as checkFiles asks.
	_, err = e.ContainerStatPath(ctx, c.ID, client.ContainerStatPathOptions{
		Path: gVisorFiles + c.ID})
	switch {
	case err == nil:
		return nil, filesElsewhere(c, gVisorFiles+c.ID)
	case !errdefs.IsNotFound(err):
		return nil, fmt.Errorf("look for where the box's files are: %w", err)
	}
	name := snapshotName(labels)
	// Whatever happens to this process, the keeper tells Reap what is left to be undone.
	if err := e.makeKeeper(ctx, c, labels); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.RemoveSnapshot(context.WithoutCancel(ctx), name))
		}
	}()
	// The engine may finish a cancelled pause.
	pausing, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	if err := Pause(pausing, e.Client, c.ID); err != nil {
		return nil, fmt.Errorf("pause the container: %w", err)
	}
	err = e.snapshotPaused(ctx, c, labels)
	resuming, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	if failed := Unpause(resuming, e.Client, c.ID); failed != nil {
		err = errors.Join(err, fmt.Errorf("resume the container: %w", failed))
	}
	if err != nil {
		return nil, err
	}
	return e.inspectSnapshot(ctx, name)
}

// checkpointLimit bounds how long the engine may take for a checkpoint, and for its removal.
const checkpointLimit = 10 * time.Minute

// snapshotPaused makes the checkpoint and the image of a paused container. The checkpoint comes
// first: gVisor then writes out what programs have written to files.
func (e *Engine) snapshotPaused(ctx context.Context, c *container.InspectResponse,
	labels map[string]string) error {
	if err := ctxerr.Of(ctx); err != nil {
		return err
	}
	key := labels[snapshotLabel]
	// The engine may finish a cancelled checkpoint.
	making, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkpointLimit)
	defer cancel()
	_, err := e.CheckpointCreate(making, c.ID, client.CheckpointCreateOptions{CheckpointID: key})
	if err != nil {
		return fmt.Errorf("%w: the runtime %q makes no checkpoint of this box: %v",
			errors.ErrUnsupported, c.HostConfig.Runtime, err)
	}
	defer e.CheckpointRemove(making, c.ID, client.CheckpointRemoveOptions{CheckpointID: key})
	if err := ctxerr.Of(ctx); err != nil {
		return err
	}
	keeper := keeperName(snapshotName(labels))
	inspected, err := e.ContainerInspect(ctx, keeper, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("inspect the container for the checkpoint: %w", err)
	}
	made := Checkpoint{Runtime: c.HostConfig.Runtime, Args: c.Config.Entrypoint,
		Boxd: c.Config.Labels[boxdLabel]}
	from := checkpointDir(c.ID, key)
	for i, name := range checkpointFiles {
		found, err := e.ContainerStatPath(ctx, keeper,
			client.ContainerStatPathOptions{Path: path.Join(containersDir, from, name)})
		switch {
		case err == nil:
			made.Files = append(made.Files, name)
			made.Size += found.Stat.Size
		case !errdefs.IsNotFound(err) || i == 0:
			return fmt.Errorf("%w: the engine does not keep checkpoints where Docker does: %v",
				errors.ErrUnsupported, err)
		}
	}
	if err := e.linkCheckpoint(ctx, keeper, from, checkpointDir(inspected.Container.ID, key),
		made.Files, ""); err != nil {
		return err
	}
	text, err := json.Marshal(made)
	if err != nil {
		return err
	}
	labels[checkpointLabel] = string(text)
	paused := *c
	state := *c.State
	state.Paused = true
	paused.State = &state
	_, err = e.commitFiles(ctx, &paused, labels)
	return err
}

// checkpointDir returns the directory of a checkpoint, below that of all containers.
func checkpointDir(id, name string) string { return path.Join(id, "checkpoints", name) }

// linkCheckpoint links the files of a checkpoint into another directory. If own is not "", it puts
// a file with that text beside them. Both directories are below that of all containers, which the
// keeper mounts.
func (e *Engine) linkCheckpoint(ctx context.Context, keeper, from, to string, files []string,
	own string) error {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: path.Dir(to) + "/", Mode: 0o700})
	if err == nil {
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: to + "/", Mode: 0o700})
	}
	for _, name := range files {
		if err == nil {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: path.Join(to, name),
				Linkname: path.Join(from, name), Mode: 0o600})
		}
	}
	if err == nil && own != "" {
		if err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(to, "box"),
			Mode: 0o600, Size: int64(len(own))}); err == nil {
			_, err = w.Write([]byte(own))
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		_, err = e.CopyToContainer(ctx, keeper, client.CopyToContainerOptions{
			DestinationPath: containersDir, Content: &archive})
	}
	if err != nil {
		return fmt.Errorf("link the checkpoint: %w", err)
	}
	return nil
}

// keeperName returns the name of the container that keeps the checkpoint of a snapshot.
func keeperName(snapshot string) string { return strings.Replace(snapshot, ":", "-", 1) }

// makeKeeper makes the container that will keep the checkpoint of a container. It never runs. It is
// made of the image of the first box: another snapshot could not be removed while it is there.
func (e *Engine) makeKeeper(ctx context.Context, c *container.InspectResponse,
	labels map[string]string) error {
	info, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return fmt.Errorf("ask the engine for its directory: %w", err)
	}
	all := path.Join(info.Info.DockerRootDir, "containers")
	base := labels[keptBaseLabel]
	if _, err := e.ImageInspect(ctx, base); errdefs.IsNotFound(err) {
		base = c.Image
	}
	// The engine may finish a cancelled creation after nothing was found to remove.
	creation, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_, err = e.ContainerCreate(creation, client.ContainerCreateOptions{
		Name: keeperName(snapshotName(labels)),
		Config: &container.Config{Image: base, Entrypoint: []string{boxdPath},
			Labels: map[string]string{keeperLabel: labels[snapshotLabel], keeperOfLabel: c.ID,
				snapshotLabel: "", remotebox.BoxLabel: "",
				remotebox.VersionLabel: remotebox.Version(),
				remotebox.HostLabel:    remotebox.HostID(),
				remotebox.PIDLabel:     strconv.Itoa(os.Getpid())}},
		HostConfig: &container.HostConfig{NetworkMode: "none", Runtime: plainRuntime,
			Mounts: []mount.Mount{{Type: mount.TypeBind, Source: all, Target: containersDir,
				BindOptions: &mount.BindOptions{NonRecursive: true}}}},
	})
	switch {
	case err != nil && strings.Contains(err.Error(), "bind source path does not exist"):
		return fmt.Errorf("%w: the engine does not have the directories of containers in %s: %v",
			errors.ErrUnsupported, all, err)
	case err != nil:
		return fmt.Errorf("create a container for the checkpoint: %w", err)
	}
	return nil
}

// removeKeeper removes the container that keeps the checkpoint of a snapshot, if there is one.
func (e *Engine) removeKeeper(ctx context.Context, snapshot string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	inspected, err := e.ContainerInspect(ctx, keeperName(snapshot),
		client.ContainerInspectOptions{})
	switch {
	case errdefs.IsNotFound(err), errdefs.IsInvalidArgument(err):
		return nil
	case err != nil:
		return fmt.Errorf("look for the checkpoint of snapshot %s: %w", snapshot, err)
	case inspected.Container.Config == nil ||
		snapshotRepository+":"+inspected.Container.Config.Labels[keeperLabel] != snapshot:
		return nil
	}
	if err := Remove(ctx, e.Client, inspected.Container.ID); err != nil {
		return fmt.Errorf("remove the checkpoint of snapshot %s: %w", snapshot, err)
	}
	return nil
}

// reapKeepers removes what keeps the checkpoints of snapshots that are gone, or that an ended
// process has not finished. It resumes boxes that such a process has left paused.
func (e *Engine) reapKeepers(ctx context.Context, now time.Time) error {
	list, err := e.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("label", keeperLabel)})
	if err != nil {
		return fmt.Errorf("list the checkpoints of snapshots: %w", err)
	}
	var errs []error
	for _, k := range list.Items {
		name := snapshotRepository + ":" + k.Labels[keeperLabel]
		owner := remotebox.ReadOwnership(k.Labels, k.Labels[remotebox.HostLabel])
		if k.Labels[keeperLabel] == "" ||
			!owner.Abandoned(remotebox.NotStarted, now.Sub(time.Unix(k.Created, 0))) {
			continue
		}
		if _, err := e.ImageInspect(ctx, name); !errdefs.IsNotFound(err) {
			continue
		}
		source := k.Labels[keeperOfLabel]
		found, err := e.ContainerInspect(ctx, source, client.ContainerInspectOptions{})
		if s := found.Container.State; err == nil && s != nil && s.Paused {
			errs = append(errs, Unpause(ctx, e.Client, source))
		}
		errs = append(errs, e.removeKeeper(ctx, name))
	}
	return errors.Join(errs...)
}

// putCheckpoint links the checkpoint into the directory of a container that has been created. Each
// container's has a file of its own: if several that are the same start at a time, the engine's
// containerd has content with that digest already, and the start fails.
func (c *Container) putCheckpoint(ctx context.Context) error {
	keeper := keeperName(snapshotRepository + ":" + c.Checkpoint.key)
	inspected, err := c.engine.ContainerInspect(ctx, keeper, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("the memory of the snapshot is gone with the container %s, which docker "+
			"container prune removes, for example: remove the snapshot, and make another", keeper)
	}
	if err == nil {
		err = c.engine.linkCheckpoint(ctx, keeper, checkpointDir(inspected.Container.ID,
			c.Checkpoint.key), checkpointDir(c.ID, startCheckpoint), c.Checkpoint.Files, c.ID)
	}
	return err
}

// Environ returns the environment that the engine would give to the container's main process.
func (c *Container) Environ(ctx context.Context) ([]string, error) {
	inspected, err := c.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask for the container's environment: %w", err)
	}
	config := inspected.Container.Config
	return append([]string{"HOSTNAME=" + config.Hostname}, config.Env...), nil
}

// dropCheckpoint removes the links after the start.
func (c *Container) dropCheckpoint(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	if _, err := c.engine.CheckpointRemove(ctx, c.ID, client.CheckpointRemoveOptions{
		CheckpointID: startCheckpoint}); err != nil {
		c.Logger.Warn("remove the checkpoint from which the container was started", "container",
			c.Name, "error", err)
	}
}

// checkpointAttempts is how often a start from a checkpoint is tried.
const checkpointAttempts = 5

// retryCheckpoint reports whether a start from a checkpoint may succeed when it is tried again. On
// Docker 20.10, one in seven fails with "content digest …: not found" (moby#42900).
func retryCheckpoint(err error) bool {
	return err != nil && strings.Contains(err.Error(), "content digest")
}

// explainRestore adds to the engine's error about a start from a checkpoint what to do about it.
func explainRestore(err error) error {
	if strings.Contains(err.Error(), "does not match across checkpoint restore") {
		return fmt.Errorf("start the container from the snapshot's checkpoint: a box that has all "+
			"of another one must have its Config: User, Mounts, Runtime, CapAdd and so on: %w", err)
	}
	return fmt.Errorf("start the container from the snapshot's checkpoint: %w", err)
}
