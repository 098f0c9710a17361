package kubebox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Snapshot is a file on this machine that has the sessions of a box, and what the box has changed
// of its image's files. Boxes are made of it with [Config].Snapshot, by any program that can read
// the file. To remove it, remove the file, or call Remove. The boxes do not need it once they have
// been made.
//
// The file holds the values of the variables of the sessions, so only this user may read it.
type Snapshot struct {
	ID      string // the path of the file, for Config.Snapshot
	Created time.Time
	Image   string // the box's image
	Size    int64  // of the file, in bytes
	// Lost is what the box had and the snapshot has not, which Accept has permitted. Of a Snapshot
	// that Snapshots has returned, it is nil.
	Lost []sandbox.Loss
}

// Snapshot keeps the box's files and sessions in a new file in the directory dir of this machine.
// Each session must be at its prompt, else the error is sandbox.ErrBusy. The box goes on as before.
//
// A cluster cannot make an image of a pod. So boxd looks at all files of the box's image, and sends
// those that are younger than the box, with the rights of the box's user. That takes from half a
// second to some seconds. What the box has removed of the image is kept, too. New makes the same of
// a new pod, looks at all its files, and compares them. For as long, New needs the space of the
// changed files twice.
//
// A box that is made of the snapshot has the files, and the sessions with their directories,
// variables, functions, and so on: see [sandbox.Like]. If it would lack anything else that is in
// the box, Snapshot makes nothing, and the error is a *sandbox.IncompleteError that lists it,
// unless [sandbox.Accept] permits that: programs, the jobs of Background among them, descriptors,
// sockets and other special files, and what is in volumes and tmpfs. Other options are ignored.
// Jobs that have ended, and the boxes of AsUser, are not part of a snapshot. Values that name the
// box, as its hostname in a file does, come along as they are.
//
// Programs that write meanwhile may be caught in the middle. So nobody else should use the box
// meanwhile.
func (b *KubeBox) Snapshot(ctx context.Context, dir string,
	opts ...sandbox.SessionOption) (*Snapshot, error) {
	s, err := b.snapshot(ctx, dir, opts)
	if err = ctxerr.Explain(ctx, err); err != nil {
		return nil, fmt.Errorf("kubebox: snapshot: %w", err)
	}
	return s, nil
}

// boxdPID is the process id of boxd in its pod.
const boxdPID = 1

func (b *KubeBox) snapshot(ctx context.Context, dir string, opts []sandbox.SessionOption) (
	s *Snapshot, err error) {
	accept := sandbox.NewSessionOptions(opts...).Accept
	image, env, err := b.container(ctx)
	if err != nil {
		return nil, err
	}
	state, lost, err := shellbox.Save(ctx, b.shell, boxdPID, env)
	if err == nil {
		err = refuse(lost, accept)
	}
	if err != nil {
		return nil, err
	}
	w, err := createSnapshot(dir, snapshotHeader{Image: image, Created: time.Now(),
		State: len(state)})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.discard()
		}
	}()
	if err = w.writeState(state); err != nil {
		return nil, err
	}
	report, err := b.host.PackImage(ctx, w)
	if err != nil {
		return nil, err
	}
	for _, m := range report.Mounts {
		lost = append(lost, sandbox.Loss{Kind: sandbox.Mounts, What: printable.Line(m)})
	}
	lost = append(lost, lostFiles(report.Skipped, report.SkippedCount)...)
	if err = refuse(lost, accept); err != nil {
		return nil, err
	}
	path, err := w.finish()
	if err != nil {
		return nil, err
	}
	if s, err = readSnapshot(path); err == nil {
		s.Lost = lost
	}
	return s, err
}

// container returns the image and the variables of the box's container, as the Config had them.
func (b *KubeBox) container(ctx context.Context) (image string, env []string, err error) {
	pod, err := b.host.cluster.Pods.Get(ctx, b.PodName(), metav1.GetOptions{})
	if err != nil {
		if lost := b.Lost(ctx); lost != nil {
			return "", nil, lost
		}
		return "", nil, b.host.cluster.Explain(err, "get", "pods", b.PodName())
	}
	for _, c := range pod.Spec.Containers {
		if c.Name != b.host.pod.Container() {
			continue
		}
		image = c.Image
		for _, v := range c.Env {
			env = append(env, v.Name+"="+strings.ReplaceAll(v.Value, "$$", "$"))
		}
	}
	return image, env, nil
}

// refuse returns an error for losses that are not accepted.
func refuse(lost []sandbox.Loss, accept sandbox.LossKind) error {
	refused := &sandbox.IncompleteError{}
	for _, loss := range lost {
		if loss.Kind&accept == 0 {
			refused.Lost = append(refused.Lost, loss)
		}
	}
	if len(refused.Lost) > 0 {
		return refused
	}
	return nil
}

// lostFiles returns the losses for files of which some are listed.
func lostFiles(list []sandbox.Skipped, count int) (lost []sandbox.Loss) {
	add := func(format string, args ...any) {
		lost = append(lost, sandbox.Loss{Kind: sandbox.SpecialFiles,
			What: printable.Line(fmt.Sprintf(format, args...))})
	}
	for _, s := range list {
		add("/%s (%s)", s.Path, s.Reason)
	}
	if more := count - len(list); more > 0 {
		add("and %d more", more)
	}
	return lost
}

// bringBack makes the files of the pod those of a snapshot, and returns the state of its sessions.
func (h *host) bringBack(ctx context.Context, path string) (state []byte, err error) {
	r, err := openSnapshot(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if state, err = r.state(); err != nil {
		return nil, err
	}
	err = h.UnpackImage(ctx, r)
	var left *sandbox.LeftError
	if errors.As(err, &left) {
		err = &sandbox.IncompleteError{Lost: lostFiles(left.Left, left.Count)}
	}
	return state, err
}

// Remove removes the snapshot's file. If it is gone already, Remove returns nil.
func (s *Snapshot) Remove() error {
	if err := os.Remove(s.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("kubebox: remove a snapshot: %w", err)
	}
	return nil
}

// Snapshots returns the snapshots in a directory of this machine, the youngest first.
func Snapshots(dir string) ([]*Snapshot, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("kubebox: list snapshots: %w: name the directory that Snapshot was "+
			"given", err)
	}
	var all []*Snapshot
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), snapshotPrefix) {
			continue
		}
		s, err := readSnapshot(filepath.Join(dir, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			return nil, fmt.Errorf("kubebox: list snapshots: %w", err)
		default:
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *Snapshot) int { return b.Created.Compare(a.Created) })
	return all, nil
}
