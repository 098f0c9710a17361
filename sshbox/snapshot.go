package sshbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A Snapshot is an image on the engine with the files and the sessions of a box. Boxes are made of
// it with [Config].Snapshot, by any program, until Remove or [Engine.Prune] removes it.
//
// The image holds all that was in the box's files, and the values of the variables of its sessions,
// in a file that only root can read, and that is in no box. It has none of the values of
// Config.Env, and nothing secret is in its labels. Whoever may use the engine can read all of the
// image, and so can whoever gets it from a registry.
//
// With KeptAll, a container that never runs keeps the box's memory, in place of that file. Its name
// is that of the image with "-" in place of ":". The memory has all values, those of Config.Env
// too. It stays on the engine, and docker container prune removes it.
type Snapshot struct {
	ID      string // for Config.Snapshot; the image's name
	Created time.Time
	Kept    Kept
	// Size is what the image adds to the one that the box was made of, and with KeptAll the memory,
	// in bytes.
	Size int64
	// Depth is the number of layers of the image. Each snapshot of a box that was made of a
	// snapshot adds one. The engine allows 125.
	Depth int
	// Lost is what the box had and the snapshot has not, which Accept has permitted. Of a Snapshot
	// that Engine.Snapshots has returned, it is nil.
	Lost []sandbox.Loss

	engine Engine
}

// Snapshot keeps the box as an image: with KeptAll where gVisor runs it, else with KeptShells. The
// engine pauses the box while it copies what the box has changed of its image, which takes from
// 0.1 s to some seconds. The box goes on as before.
//
// # All that runs
//
// The runtime must be gVisor's runsc, of 2026, with --overlay2=none, and the engine's dockerd must
// have been started with --experimental. Then a box that is made of the snapshot has all that was
// in the box, at one moment: files, sessions with their unfinished commands, jobs with their logs,
// programs, descriptors, connections within the box, and what is in a tmpfs. Only volumes and
// directories that are mounted, and changes of the engine's own files such as /etc/hosts, are
// losses. What belongs to a connection to the box is in no copy: Run, Dial, Listen, Watch.
//
// Each copy has keys, an id and a hostname of its own, and the variables of its own Config.Env. In
// sessions, RANDOM of bash and busybox ash gets another seed, and variables that differ are set;
// in a session whose command is unfinished, before its next command. Programs that run, jobs among
// them, keep their variables and the state of their own random numbers, which then are the same in
// all copies. Config.User, Mounts, Shell, Dir, limits of privileges and so on must be those of the
// box. Only a program with the same boxd as the one that has made the box can make boxes of the
// snapshot.
//
// If the engine cannot do that, and KeptShells would lose something that runs, the error is also
// errors.ErrUnsupported, and says what to do.
//
// # Sessions only
//
// Elsewhere, each session must be at its prompt, else the error is sandbox.ErrBusy.
//
// A box that is made of the snapshot has the files, and the sessions with their directories,
// variables, functions, and so on: see [sandbox.Like]. If it would lack anything else that is in
// the box, Snapshot makes nothing, and the error is a *sandbox.IncompleteError that lists it,
// unless [sandbox.Accept] permits that: programs, the jobs of Background among them, descriptors,
// and volumes, directories and tmpfs that are mounted. Other options are ignored. Jobs that have
// ended, and the boxes of AsUser, are not part of a snapshot. Values that name the box, as its
// hostname in a file does, come along as they are.
//
// Between the reading of the sessions and the pause there is a moment. So nobody else should use
// the box meanwhile. Sparse files are written out in the image. If the engine's storage driver is
// not overlay2 (docker info), the engine looks for what the box has changed by sizes and times: of
// a file that has kept both, as with touch -d, the image has the old content.
//
// The error is errors.ErrUnsupported if the box has Config.ReadOnlyRoot, or if its runtime keeps
// the files where the engine does not find them, as gVisor does without --overlay2=none. If the
// image had more layers than the engine allows, the error says so.
func (b *DockerSSHBox) Snapshot(ctx context.Context,
	opts ...sandbox.SessionOption) (*Snapshot, error) {
	s, err := b.snapshot(ctx, false, opts)
	if err != nil {
		return nil, fmt.Errorf("sshbox: snapshot: %w", err)
	}
	return s, nil
}

// Kept says what a Snapshot has, beside the files.
type Kept string

// What a Snapshot has.
const (
	// KeptShells is the state of the sessions: directories, variables, functions, and so on.
	KeptShells Kept = "shells"
	// KeptAll is all that runs in the box, with its memory.
	KeptAll Kept = "all"
)

// Kept says what New or Fork has brought into the box from the snapshot that it was made of. It is
// "" if the box was made of an image, or was attached to.
func (b *DockerSSHBox) Kept() Kept {
	switch {
	case b.config == nil || b.config.Snapshot == "":
		return ""
	case b.host.container.Checkpoint != nil:
		return KeptAll
	}
	return KeptShells
}

// boxdPID is the process id of boxd in its container.
const boxdPID = 1

func (b *DockerSSHBox) snapshot(ctx context.Context, temporary bool,
	opts []sandbox.SessionOption) (*Snapshot, error) {
	inspected, err := b.host.engine.ContainerInspect(ctx, b.ContainerID(),
		client.ContainerInspectOptions{})
	if err != nil {
		if lost := b.Lost(ctx); lost != nil {
			err = lost
		}
		return nil, err
	}
	c := inspected.Container
	if c.HostConfig.ReadonlyRootfs {
		return nil, fmt.Errorf("%w: the box has Config.ReadOnlyRoot, so it has changed no files "+
			"that an image could keep: sandbox.Like copies its sessions", errors.ErrUnsupported)
	}
	accept := sandbox.NewSessionOptions(opts...).Accept
	can, why := b.host.engine.CanCheckpoint(ctx, &c)
	if can {
		s, err := b.snapshotAll(ctx, &c, temporary, accept)
		if !errors.Is(err, errors.ErrUnsupported) {
			return s, err
		}
		why = err
	}
	s, err := b.snapshotShells(ctx, &c, temporary, accept)
	var lost *sandbox.IncompleteError
	if why != nil && (errors.As(err, &lost) || errors.Is(err, sandbox.ErrBusy)) {
		err = fmt.Errorf("%w; %w", err, why)
	}
	return s, err
}

// snapshotAll makes a snapshot of all that runs in the box. What is mounted from outside, and the
// engine's own files, are not part of it.
func (b *DockerSSHBox) snapshotAll(ctx context.Context, c *container.InspectResponse,
	temporary bool, accept sandbox.LossKind) (*Snapshot, error) {
	lost := slices.DeleteFunc(b.lostMounts(ctx, c), isTmpfs)
	if err := refuse(lost, accept); err != nil {
		return nil, err
	}
	if err := shellbox.Settle(ctx, b.shell); err != nil {
		return nil, err
	}
	made, err := b.host.engine.SnapshotAll(ctx, c, temporary)
	if err != nil {
		return nil, err
	}
	s := newSnapshot(*made, Engine{Docker: b.docker})
	s.Lost = lost
	return s, nil
}

// snapshotShells makes a snapshot of the box's files, and of the state of its sessions.
func (b *DockerSSHBox) snapshotShells(ctx context.Context, c *container.InspectResponse,
	temporary bool, accept sandbox.LossKind) (*Snapshot, error) {
	state, lost, err := shellbox.Save(ctx, b.shell, boxdPID, c.Config.Env)
	if err != nil {
		return nil, err
	}
	lost = append(lost, b.lostMounts(ctx, c)...)
	if err := refuse(lost, accept); err != nil {
		return nil, err
	}
	made, err := b.host.engine.Snapshot(ctx, c, state, temporary)
	if err != nil {
		return nil, err
	}
	s := newSnapshot(*made, Engine{Docker: b.docker})
	s.Lost = lost
	return s, nil
}

// refuse returns an error with the losses that are not accepted, if there are any.
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

func newSnapshot(s docker.Snapshot, engine Engine) *Snapshot {
	kept := KeptShells
	if s.Checkpoint != nil {
		kept = KeptAll
	}
	return &Snapshot{ID: s.Name, Created: s.Created, Kept: kept, Size: s.Size, Depth: s.Depth,
		engine: engine}
}

// Remove removes the snapshot. If it is gone already, Remove returns nil. While a box that was made
// of it is there, Remove returns an error for which errdefs.IsConflict
// (github.com/containerd/errdefs) reports true. A removal that has begun is finished, even if ctx
// ends: that can take minutes on a slow disk.
func (s *Snapshot) Remove(ctx context.Context) error {
	engine, err := s.engine.open(ctx)
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := engine.RemoveSnapshot(ctx, s.ID); err != nil {
		return fmt.Errorf("sshbox: %w", err)
	}
	return nil
}

// Snapshots returns the snapshots on the engine, of all programs, the youngest first. Those of
// [DockerSSHBox.Fork] are not among them.
func (e Engine) Snapshots(ctx context.Context) ([]*Snapshot, error) {
	engine, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	list, err := engine.Snapshots(ctx)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	var all []*Snapshot
	for _, s := range list {
		all = append(all, newSnapshot(s, e))
	}
	return all, nil
}

// copyConfig returns the Config for a copy of the box.
func (b *DockerSSHBox) copyConfig(id string) (Config, error) {
	if b.config == nil {
		return Config{}, errors.New("its Config is not known, because the box was attached to: " +
			"use ForkInto, or New with Config.Snapshot")
	}
	c := *b.config
	c.Image, c.Snapshot, c.Name = "", id, "" // a name is one box's
	return c, nil
}

// Back returns a new box of a snapshot, made with the Config of b, and then closes b. The new
// container has an id of its own, and its name is the default. If Back fails, b stays as it is. It
// fails for a box that Attach or Join has returned, because the box's Config is not known.
func (b *DockerSSHBox) Back(ctx context.Context, s *Snapshot) (*DockerSSHBox, error) {
	c, err := b.copyConfig(s.ID)
	var back *DockerSSHBox
	if err == nil {
		back, err = makeBox(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("sshbox: back to snapshot %s: %w", s.ID, err)
	}
	if err := b.Close(); err != nil {
		c.log().Warn("close the box that has gone back to a snapshot", "container",
			b.ContainerName(), "error", err)
	}
	return back, nil
}
