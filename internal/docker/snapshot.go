package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// A snapshot is an image of a box's files in which stateFile holds the state of its sessions. Only
// root can read that file. It is not in the boxes that are made of the image: TakeState removes it.
// The labels say nothing of the state.

// The labels of such an image, beside keptBaseLabel and keptImageLabel, which are those of the
// image that the first box was made of.
const (
	snapshotLabel = "sandshell.snapshot" // the tag
	// temporaryLabel has an image that goes with its last box. HostLabel and PIDLabel name the
	// process that made it.
	temporaryLabel = "sandshell.temporary"
)

const (
	stateName = ".sandshell-sessions"
	stateFile = "/" + stateName
)

// A Snapshot is an image of a box.
type Snapshot struct {
	Name    string
	Created time.Time
	Size    int64 // of its own layer, and of the memory, in bytes
	Depth   int   // how many layers it has

	Checkpoint *Checkpoint // nil: it has the state of the sessions, and no memory
}

// Snapshot makes an image of a box's files, and of the state of its sessions. A temporary one is
// removed by Reap when this process has ended and no box uses it.
func (e *Engine) Snapshot(ctx context.Context, c *container.InspectResponse, state []byte,
	temporary bool) (s *Snapshot, err error) {
	labels, err := e.snapshotLabels(ctx, c, temporary)
	if err != nil {
		return nil, err
	}
	if err := e.putState(ctx, c.ID, state); err != nil {
		return nil, fmt.Errorf("put the state of the sessions into the container: %w", err)
	}
	name, err := e.CommitFiles(ctx, c, labels)
	if cleared := e.clearState(context.WithoutCancel(ctx), c.ID); err == nil && cleared != nil {
		err = errors.Join(cleared, e.RemoveSnapshot(context.WithoutCancel(ctx), name))
	}
	if err != nil {
		return nil, err
	}
	if s, err = e.inspectSnapshot(ctx, name); err != nil {
		err = errors.Join(err, e.RemoveSnapshot(context.WithoutCancel(ctx), name))
	}
	return s, err
}

// snapshotLabels returns the labels of a snapshot of a container.
func (e *Engine) snapshotLabels(ctx context.Context, c *container.InspectResponse,
	temporary bool) (map[string]string, error) {
	base, err := e.baseImage(ctx, c)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{snapshotLabel: newSnapshotKey(), keptBaseLabel: c.Image,
		keptImageLabel: c.Config.Image, temporaryLabel: "", checkpointLabel: "",
		remotebox.VersionLabel: remotebox.Version()}
	if base.Config != nil && base.Config.Labels[keptBaseLabel] != "" {
		labels[keptBaseLabel] = base.Config.Labels[keptBaseLabel]
		labels[keptImageLabel] = base.Config.Labels[keptImageLabel]
	}
	if temporary {
		labels[temporaryLabel] = "true"
		labels[remotebox.HostLabel] = remotebox.HostID()
		labels[remotebox.PIDLabel] = strconv.Itoa(os.Getpid())
	}
	return labels, nil
}

// putState writes the file with the state.
func (e *Engine) putState(ctx context.Context, id string, state []byte) error {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	// With the size and the time that the file has in the snapshot that the box was made of, it
	// would not be in the image: see comparesTimes.
	changed := time.Unix(mathrand.Int64N(1<<31), 0)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: stateName, Mode: 0o600,
		Size: int64(len(state)), ModTime: changed})
	if err == nil {
		_, err = w.Write(state)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		_, err = e.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: "/",
			Content: &archive})
	}
	return err
}

// removeStateLimit bounds how long the removal of the file may take.
const removeStateLimit = 30 * time.Second

// clearState removes the file with the state.
func (e *Engine) clearState(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removeStateLimit)
	defer cancel()
	_, err := e.takeState(ctx, id, math.MaxInt64-1)
	if err != nil {
		err = fmt.Errorf("remove the state of the sessions from the container: %w", err)
	}
	return err
}

// TakeState reads the state of the sessions from a container that was made of a snapshot, and
// removes it there. It has at most limit bytes.
func (e *Engine) TakeState(ctx context.Context, id string, limit int64) ([]byte, error) {
	state, err := e.takeState(ctx, id, limit)
	if err == nil && int64(len(state)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", stateFile, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of the sessions: %w", err)
	}
	return state, nil
}

// takeState has boxd do it, which is in each box, in one exec. A copy by the engine's API starts
// a program of the engine's for each way, and cannot remove the file.
func (e *Engine) takeState(ctx context.Context, id string, limit int64) ([]byte, error) {
	created, err := e.ExecCreate(ctx, id, client.ExecCreateOptions{User: "0:0",
		Cmd: []string{wire.Path, "take", stateFile}, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return nil, err
	}
	r, err := e.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	stop := context.AfterFunc(ctx, r.Close)
	defer stop()
	from := newAttached(r.Conn, r.Reader, slog.New(slog.DiscardHandler))
	state, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && len(state) == 0 {
		err = fmt.Errorf("%s: %q", stateFile, from.Said())
	}
	return state, ctxerr.Explain(ctx, err)
}

// FindSnapshot returns the checkpoint of a snapshot, nil if it has none. It returns an error if
// there is no snapshot of that name.
func (e *Engine) FindSnapshot(ctx context.Context, name string) (*Checkpoint, error) {
	inspected, err := e.ImageInspect(ctx, name)
	switch {
	case errdefs.IsNotFound(err):
		return nil, errdefs.ErrNotFound.WithMessage(fmt.Sprintf("there is no snapshot %q: "+
			"Engine.Snapshots lists those there are", name))
	case err != nil:
		return nil, fmt.Errorf("snapshot %q: %w", name, err)
	case inspected.Config == nil ||
		!isSnapshot(inspected.RepoTags, inspected.Config.Labels):
		return nil, fmt.Errorf("%q is an image, but no snapshot: name it in Config.Image", name)
	}
	return readCheckpoint(inspected.Config.Labels)
}

// isSnapshot reports whether an image is a snapshot. An image that a user has made of a snapshot
// has the same labels, but not the name.
func isSnapshot(tags []string, labels map[string]string) bool {
	return labels[snapshotLabel] != "" && tagged(tags, snapshotName(labels))
}

func snapshotName(labels map[string]string) string {
	return snapshotRepository + ":" + labels[snapshotLabel]
}

func (e *Engine) inspectSnapshot(ctx context.Context, name string) (*Snapshot, error) {
	inspected, err := e.ImageInspect(ctx, name)
	if err != nil {
		return nil, err
	}
	history, err := e.ImageHistory(ctx, name)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Name: name, Depth: len(inspected.RootFS.Layers)}
	s.Created, _ = time.Parse(time.RFC3339Nano, inspected.Created)
	if len(history.Items) > 0 {
		s.Size = history.Items[0].Size
	}
	if inspected.Config != nil {
		s.Checkpoint, err = readCheckpoint(inspected.Config.Labels)
	}
	if s.Checkpoint != nil {
		s.Size += s.Checkpoint.Size
	}
	return s, err
}

func (e *Engine) listSnapshots(ctx context.Context) ([]image.Summary, error) {
	all, err := e.snapshotImages(ctx)
	return slices.DeleteFunc(all, func(i image.Summary) bool {
		return !isSnapshot(i.RepoTags, i.Labels)
	}), err
}

// snapshotImages returns all images with the label, those that users have made of snapshots too.
func (e *Engine) snapshotImages(ctx context.Context) ([]image.Summary, error) {
	list, err := e.ImageList(ctx, client.ImageListOptions{
		Filters: client.Filters{}.Add("label", snapshotLabel)})
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	return list.Items, nil
}

// Snapshots returns the snapshots on the engine, the youngest first. Temporary ones are not among
// them.
func (e *Engine) Snapshots(ctx context.Context) (all []Snapshot, err error) {
	list, err := e.listSnapshots(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if i.Labels[temporaryLabel] != "" {
			continue
		}
		s, err := e.inspectSnapshot(ctx, snapshotName(i.Labels))
		switch {
		case errdefs.IsNotFound(err): // removed meanwhile
		case err != nil:
			return nil, fmt.Errorf("snapshot %s: %w", snapshotName(i.Labels), err)
		default:
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b Snapshot) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// RemoveSnapshot removes a snapshot. If there is none of that name, it returns nil.
func (e *Engine) RemoveSnapshot(ctx context.Context, name string) error {
	_, err := e.FindSnapshot(ctx, name)
	if err == nil {
		err = e.removeImage(ctx, name)
	}
	switch {
	case err == nil, imageGone(err):
		return e.removeKeeper(ctx, name)
	case errdefs.IsConflict(err):
		return fmt.Errorf("a box that was made of snapshot %s is still there: close it first: %w",
			name, err)
	}
	return fmt.Errorf("remove snapshot %s: %w", name, err)
}

// TemporaryOf returns the name of the temporary snapshot that a container was made of, or "".
func TemporaryOf(c *container.InspectResponse) string {
	if c.Config == nil || c.Config.Labels[temporaryLabel] == "" ||
		c.Config.Image != snapshotName(c.Config.Labels) {
		return ""
	}
	return c.Config.Image
}

// ReapSnapshots removes the temporary snapshots of processes that have ended, if no box uses them.
func (e *Engine) ReapSnapshots(ctx context.Context) error {
	now, err := e.now(ctx)
	if err != nil {
		return err
	}
	return e.reapSnapshots(ctx, now)
}

// reapSnapshots removes temporary snapshots whose process has ended, and which no box uses.
func (e *Engine) reapSnapshots(ctx context.Context, now time.Time) error {
	all, err := e.snapshotImages(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, i := range all {
		// Engines before 25 name what has no name.
		nameless := len(i.RepoTags) == 0 || slices.Equal(i.RepoTags, []string{"<none>:<none>"})
		if !nameless && !isSnapshot(i.RepoTags, i.Labels) {
			continue
		}
		owner := remotebox.ReadOwnership(i.Labels, i.Labels[remotebox.HostLabel])
		age := now.Sub(time.Unix(i.Created, 0))
		if i.Labels[temporaryLabel] == "" || !owner.Abandoned(remotebox.NotStarted, age) {
			continue
		}
		if nameless {
			err = e.removeNameless(ctx, i.ID)
		} else {
			err = e.RemoveSnapshot(ctx, snapshotName(i.Labels))
		}
		if err != nil && !errdefs.IsConflict(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, e.reapKeepers(ctx, now))...)
}

// removeNameless removes a temporary snapshot that has lost its name: the engine takes the name
// away and keeps the image if a container of it is made at that moment.
func (e *Engine) removeNameless(ctx context.Context, id string) error {
	inspected, err := e.ImageInspect(ctx, id)
	if err == nil && strings.HasPrefix(inspected.Comment, snapshotComment) {
		err = e.removeImage(ctx, id)
	}
	if imageGone(err) {
		return nil
	}
	return err
}

// imageGone reports whether an image could not be removed because it is gone. If somebody else
// removes it at the same time, the engine has no kind for its error (moby, image/store.go).
func imageGone(err error) bool {
	return errdefs.IsNotFound(err) ||
		err != nil && strings.Contains(err.Error(), "unrecognized image ID")
}
