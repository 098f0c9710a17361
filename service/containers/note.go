package containers

import (
	"cmp"
	"context"
	"encoding/json"
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

// A note is a place.Note in the labels of an empty volume. The label noteLabel has the id of the
// container. The labels of a volume never change, so each change of a note makes a new volume. If
// two processes write at once, the newest note counts, but the generation never goes back.
//
// The engine's list of volumes is not of one moment. It may lack a volume that was made while the
// engine put the list together, and at the same time a volume that was removed then. So a note is
// removed only when a newer one is older than noteGrace.
type note struct {
	volume  string
	written int64 // when, in nanoseconds since 1970; it is the note's Version
	place.Note
}

const noteGrace = 10 * time.Second

// removeLimit bounds the removal of notes.
const removeLimit = 30 * time.Second

// superseded returns the notes that can be removed. now is in nanoseconds since 1970.
func superseded(notes []note, now int64) []note {
	slices.SortFunc(notes, func(a, b note) int { return cmp.Compare(b.written, a.written) })
	for i, n := range notes {
		if n.written < now-int64(noteGrace) {
			return notes[i+1:]
		}
	}
	return nil
}

// The labels of a note's volume.
const (
	noteLabel       = docker.ServiceLabel + ".note" // the container's id
	writtenLabel    = docker.ServiceLabel + ".at"
	ownerLabel      = docker.ServiceLabel + ".owner"
	createdLabel    = docker.ServiceLabel + ".created"
	startedLabel    = docker.ServiceLabel + ".started"
	usedLabel       = docker.ServiceLabel + ".used"
	pausedLabel     = docker.ServiceLabel + ".paused"
	generationLabel = docker.ServiceLabel + ".generation"
	dirLabel        = docker.ServiceLabel + ".dir"
	keptLabel       = docker.ServiceLabel + ".kept"
	checkpointLabel = docker.ServiceLabel + ".checkpoint"
	metadataLabel   = docker.ServiceLabel + ".metadata" // in JSON
	egressLabel     = docker.ServiceLabel + ".egress"   // in JSON
	hostsLabel      = docker.ServiceLabel + ".hosts"    // in JSON
	endsLabel       = docker.ServiceLabel + ".ends"
	pauseLabel      = docker.ServiceLabel + ".pause-at-end" // "true" or nothing
	wakeLabel       = docker.ServiceLabel + ".wake-for"     // in nanoseconds
)

func noteLabels(n place.Note) map[string]string {
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return strconv.FormatInt(t.UnixNano(), 10)
	}
	metadata := ""
	if len(n.Metadata) > 0 {
		text, _ := json.Marshal(n.Metadata) // of texts: it cannot fail
		metadata = string(text)
	}
	list := func(texts []string) string {
		if texts == nil {
			return ""
		}
		text, _ := json.Marshal(texts)
		return string(text)
	}
	pause, wake := "", ""
	if n.PauseAtEnd {
		pause = "true"
	}
	if n.WakeFor != 0 {
		wake = strconv.FormatInt(int64(n.WakeFor), 10)
	}
	return map[string]string{
		metadataLabel: metadata, egressLabel: list(n.Egress), hostsLabel: list(n.Hosts),
		endsLabel: stamp(n.Ends), pauseLabel: pause, wakeLabel: wake,
		ownerLabel: n.Owner, createdLabel: stamp(n.Created), startedLabel: stamp(n.Started),
		usedLabel: stamp(n.Used), pausedLabel: stamp(n.Paused),
		generationLabel: strconv.Itoa(n.Generation), dirLabel: n.Dir, keptLabel: string(n.Kept),
		checkpointLabel: n.Checkpoint,
	}
}

func parseNote(volume string, labels map[string]string) (n note, err error) {
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
	written := number(writtenLabel)
	var metadata map[string]string
	if text := labels[metadataLabel]; text != "" {
		err = errors.Join(err, json.Unmarshal([]byte(text), &metadata))
	}
	list := func(label string) (texts []string) {
		if text := labels[label]; text != "" {
			err = errors.Join(err, json.Unmarshal([]byte(text), &texts))
		}
		return texts
	}
	rules, hosts := list(egressLabel), list(hostsLabel)
	n = note{volume: volume, written: written, Note: place.Note{
		Version: written,
		Owner:   labels[ownerLabel], Created: stamp(createdLabel), Started: stamp(startedLabel),
		Used: stamp(usedLabel), Paused: stamp(pausedLabel),
		Generation: int(number(generationLabel)), Dir: labels[dirLabel],
		Kept: place.Kept(labels[keptLabel]), Checkpoint: labels[checkpointLabel],
		Metadata: metadata, Egress: rules, Hosts: hosts, Ends: stamp(endsLabel),
		PauseAtEnd: labels[pauseLabel] == "true", WakeFor: time.Duration(number(wakeLabel)),
	}}
	return n, err
}

// merge returns the newest of a container's notes, with the highest Generation and the latest Used
// of all of them. It returns nil if there is no note.
func merge(notes []note) *place.Note {
	if len(notes) == 0 {
		return nil
	}
	newest := slices.MaxFunc(notes, func(a, b note) int {
		return cmp.Compare(a.written, b.written)
	}).Note
	for _, n := range notes {
		newest.Generation = max(newest.Generation, n.Generation)
		if n.Used.After(newest.Used) {
			newest.Used = n.Used
		}
	}
	return &newest
}

// notes returns the notes of a container, by the container's id. If handle is "", it returns those
// of all containers of the service.
func (p *Place) notes(ctx context.Context, e *docker.Engine,
	handle string) (map[string][]note, error) {
	filters := client.Filters{}.Add("label", serviceLabel+"="+p.service)
	if handle == "" {
		filters.Add("label", noteLabel)
	} else {
		filters.Add("label", noteLabel+"="+handle)
	}
	volumes, err := e.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	if err != nil {
		return nil, fmt.Errorf("list the notes on boxes: %w", err)
	}
	notes := map[string][]note{}
	for _, v := range volumes.Items {
		n, err := parseNote(v.Name, v.Labels)
		if err != nil {
			p.log.Warn("a note on a box cannot be read", "volume", v.Name, "error", err)
			continue
		}
		handle := v.Labels[noteLabel]
		notes[handle] = append(notes[handle], n)
	}
	return notes, nil
}

// Note implements place.Place.
func (p *Place) Note(ctx context.Context, handle string, n place.Note) error {
	e, err := p.connect(ctx)
	if err != nil {
		return err
	}
	var older map[string][]note
	if n.Version != 0 {
		if older, err = p.notes(ctx, e, handle); err != nil {
			return err
		}
	}
	written := time.Now().UnixNano()
	for _, o := range older[handle] {
		if o.written > n.Version {
			return fmt.Errorf("write a note on the box: %w: another process has written one",
				place.ErrConflict)
		}
		n.Generation = max(n.Generation, o.Generation)
		written = max(written, o.written+1) // the clock may have been set back
	}
	labels := noteLabels(n)
	labels[serviceLabel], labels[noteLabel], labels[writtenLabel] = p.service, handle,
		strconv.FormatInt(written, 10)
	name := fmt.Sprintf("sandshell-note-%.12s-%d", handle, written)
	if _, err := e.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name,
		Labels: labels}); err != nil {
		return fmt.Errorf("write a note on the box: %w", err)
	}
	return p.removeNotes(ctx, e, superseded(older[handle], written))
}

// removeNotes removes notes. It goes on if ctx ends, so that it does not leave half of them.
func (p *Place) removeNotes(ctx context.Context, e *docker.Engine, notes []note) error {
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

// Tidy implements place.Place.
func (p *Place) Tidy(ctx context.Context) error {
	e, err := p.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(p.tidyNotes(ctx, e), p.tidyForks(ctx, e))
}

// tidyNotes removes the notes of boxes that are gone. It lists the notes before the containers. A
// note is written only when its container exists. So if the container is not in the later list, it
// is gone.
func (p *Place) tidyNotes(ctx context.Context, e *docker.Engine) error {
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
	for handle, old := range notes {
		if len(old) > 0 {
			p.log.Debug("removing old notes on a box", "container", handle, "notes", len(old))
			errs = append(errs, p.removeNotes(ctx, e, old))
		}
	}
	return errors.Join(errs...)
}
