package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/service/place"
)

// A dockerNote is a Note in the labels of an empty volume. A volume's labels never change either,
// so that a newer note is a new volume. Notes are found by the label that holds the container's id.
// Two processes may write at once: the newest note counts, but a generation never goes back.
//
// Older notes are removed when a newer one has been there for noteGrace: the engine's list of
// volumes is not of one moment, and one that was made while it was being made up may be missing in
// it, as well as one that was removed meanwhile.
type dockerNote struct {
	volume string
	at     int64 // when it was written: its Version
	place.Note
}

const noteGrace = 10 * time.Second

// superseded returns the notes that are to be removed.
func superseded(notes []dockerNote, now int64) []dockerNote {
	slices.SortFunc(notes, func(a, b dockerNote) int { return cmp.Compare(b.at, a.at) })
	for i, n := range notes {
		if n.at < now-int64(noteGrace) {
			return notes[i+1:]
		}
	}
	return nil
}

// The labels of a note; noteLabel's value is the container's id.
const (
	noteLabel       = docker.ServiceLabel + ".note"
	atLabel         = docker.ServiceLabel + ".at"
	ownerLabel      = docker.ServiceLabel + ".owner"
	createdLabel    = docker.ServiceLabel + ".created"
	startedLabel    = docker.ServiceLabel + ".started"
	usedLabel       = docker.ServiceLabel + ".used"
	pausedLabel     = docker.ServiceLabel + ".paused"
	generationLabel = docker.ServiceLabel + ".generation"
	dirLabel        = docker.ServiceLabel + ".dir"
	keptLabel       = docker.ServiceLabel + ".kept"
	checkpointLabel = docker.ServiceLabel + ".checkpoint"
)

func noteLabels(n place.Note) map[string]string {
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return strconv.FormatInt(t.UnixNano(), 10)
	}
	return map[string]string{
		ownerLabel: n.Owner, createdLabel: stamp(n.Created), startedLabel: stamp(n.Started),
		usedLabel: stamp(n.Used), pausedLabel: stamp(n.Paused),
		generationLabel: strconv.Itoa(n.Generation), dirLabel: n.Dir, keptLabel: string(n.Kept),
		checkpointLabel: n.Checkpoint,
	}
}

func parseNote(volume string, labels map[string]string) (n dockerNote, err error) {
	number := func(label string) int64 {
		if labels[label] == "" {
			return 0
		}
		i, failed := strconv.ParseInt(labels[label], 10, 64)
		err = errors.Join(err, failed)
		return i
	}
	stamp := func(label string) time.Time {
		if i := number(label); i != 0 {
			return time.Unix(0, i)
		}
		return time.Time{}
	}
	at := number(atLabel)
	return dockerNote{volume: volume, at: at, Note: place.Note{
		Version: at,
		Owner:   labels[ownerLabel], Created: stamp(createdLabel), Started: stamp(startedLabel),
		Used: stamp(usedLabel), Paused: stamp(pausedLabel),
		Generation: int(number(generationLabel)), Dir: labels[dirLabel],
		Kept: Kept(labels[keptLabel]), Checkpoint: labels[checkpointLabel],
	}}, err
}

// merge makes one note of a container's notes; nil if there is none.
func merge(notes []dockerNote) *place.Note {
	if len(notes) == 0 {
		return nil
	}
	newest := slices.MaxFunc(notes, func(a, b dockerNote) int {
		return cmp.Compare(a.at, b.at)
	}).Note
	for _, n := range notes {
		newest.Generation = max(newest.Generation, n.Generation)
		if n.Used.After(newest.Used) {
			newest.Used = n.Used
		}
	}
	return &newest
}

// notes returns the notes of the container of that id, or of all containers of the service, by
// container.
func (p *dockerPlace) notes(ctx context.Context, e *docker.Engine,
	of string) (map[string][]dockerNote, error) {
	filters := client.Filters{}.Add("label", serviceLabel+"="+p.service)
	if of == "" {
		filters.Add("label", noteLabel)
	} else {
		filters.Add("label", noteLabel+"="+of)
	}
	volumes, err := e.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	if err != nil {
		return nil, fmt.Errorf("list the notes on boxes: %w", err)
	}
	notes := map[string][]dockerNote{}
	for _, v := range volumes.Items {
		n, err := parseNote(v.Name, v.Labels)
		if err != nil {
			p.log.Warn("a note on a box cannot be read", "volume", v.Name, "error", err)
			continue
		}
		of := v.Labels[noteLabel]
		notes[of] = append(notes[of], n)
	}
	return notes, nil
}

// Note implements Place.
func (p *dockerPlace) Note(ctx context.Context, handle string, n place.Note) error {
	e, err := p.open(ctx)
	if err != nil {
		return err
	}
	var older map[string][]dockerNote
	if n.Version != 0 {
		if older, err = p.notes(ctx, e, handle); err != nil {
			return err
		}
	}
	at := time.Now().UnixNano()
	for _, o := range older[handle] {
		if o.at > n.Version {
			return fmt.Errorf("write a note on the box: %w: another process has written one",
				ErrConflict)
		}
		n.Generation = max(n.Generation, o.Generation)
		at = max(at, o.at+1) // the clock may have been set back
	}
	labels := noteLabels(n)
	labels[serviceLabel], labels[noteLabel], labels[atLabel] = p.service, handle,
		strconv.FormatInt(at, 10)
	name := fmt.Sprintf("sandshell-note-%.12s-%d", handle, at)
	if _, err := e.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name,
		Labels: labels}); err != nil {
		return fmt.Errorf("write a note on the box: %w", err)
	}
	return p.removeNotes(ctx, e, superseded(older[handle], at))
}

// removeNotes removes notes that no longer count. The caller's end does not leave half of them.
func (p *dockerPlace) removeNotes(ctx context.Context, e *docker.Engine, notes []dockerNote) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	var errs []error
	for _, n := range notes {
		if _, err := e.VolumeRemove(ctx, n.volume, client.VolumeRemoveOptions{}); err != nil &&
			!errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove a note on a box: %w", err))
		}
	}
	return errors.Join(errs...)
}

// forget removes the notes on a box that is gone.
func (p *dockerPlace) forget(ctx context.Context, e *docker.Engine, handle string) error {
	notes, err := p.notes(ctx, e, handle)
	if err != nil {
		return err
	}
	return p.removeNotes(ctx, e, notes[handle])
}

// Tidy implements Place. The containers are listed after the notes: a note is written on a
// container that there is, so one whose container is not in the later list is of one that is gone.
func (p *dockerPlace) Tidy(ctx context.Context) error {
	e, err := p.open(ctx)
	if err != nil {
		return err
	}
	notes, err := p.notes(ctx, e, "")
	if err != nil || len(notes) == 0 {
		return err
	}
	containers, err := e.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("label", serviceLabel+"="+p.service)})
	if err != nil {
		return fmt.Errorf("list the boxes: %w", err)
	}
	now := time.Now().UnixNano()
	for _, c := range containers.Items {
		notes[c.ID] = superseded(notes[c.ID], now)
	}
	var errs []error
	for handle, of := range notes {
		if len(of) > 0 {
			p.log.Debug("removing old notes on a box", "container", handle, "notes", len(of))
			errs = append(errs, p.removeNotes(ctx, e, of))
		}
	}
	return errors.Join(errs...)
}
