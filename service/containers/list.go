package containers

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/service/place"
)

// List implements place.Place. It asks the engine for two lists, whatever the number of boxes.
func (p *Place) List(ctx context.Context, id string) ([]*place.Record, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	// Each list is right at one moment. A box gets its first note before it counts as started, so
	// the notes are listed after the containers.
	filters := client.Filters{}.Add("label", serviceLabel+"="+p.service)
	if id != "" {
		filters.Add("name", "^/"+strings.ReplaceAll(p.containerName(id), ".", `\.`)+"$")
	}
	containers, err := e.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: filters})
	if err != nil {
		return nil, fmt.Errorf("list the boxes: %w", err)
	}
	if len(containers.Items) == 0 {
		return nil, nil
	}
	handle := ""
	if id != "" {
		handle = containers.Items[0].ID
	}
	notes, err := p.notes(ctx, e, handle)
	if err != nil {
		return nil, err
	}
	var records []*place.Record
	for _, c := range containers.Items {
		if r := p.record(c, notes[c.ID]); r != nil {
			records = append(records, r)
		}
	}
	return records, nil
}

// record returns the Record of a container. It returns nil if the container is no box of the
// service: an image may have labels of the service too.
func (p *Place) record(c container.Summary, notes []note) *place.Record {
	if len(c.Names) == 0 || c.Labels["sandshell.box"] == "" {
		return nil
	}
	made, err := strconv.ParseInt(c.Labels[madeLabel], 10, 64)
	if err != nil || c.Labels[specLabel] == "" {
		return nil
	}
	r := &place.Record{Handle: c.ID, Spec: c.Labels[specLabel], Created: time.Unix(0, made)}
	for _, port := range c.Ports {
		if port.PublicPort == 0 || port.Type != "tcp" {
			continue
		}
		if r.Published == nil {
			r.Published = map[int]int{}
		}
		r.Published[int(port.PrivatePort)] = int(port.PublicPort)
	}
	for _, name := range c.Names { // a container that is being renamed has two names
		if id, ok := p.idOf(strings.TrimPrefix(name, "/")); ok {
			r.ID = id
		}
	}
	if r.Note = merge(notes); r.Note != nil {
		r.Created = r.Note.Created
	}
	r.Status, r.Detail, r.Ended = statusOf(string(c.State), c.Status)
	r.Orphan = isOrphan(c.Labels, r)
	return r
}

// statusOf returns the Status of a container in a state. text is what docker ps shows: "Exited
// (137) 2 hours ago".
func statusOf(state, text string) (status place.Status, detail string, ended bool) {
	switch state {
	case "running":
		return place.Running, "", false
	case "paused":
		return place.Paused, "", false
	case "created", "restarting":
		return place.Starting, "its container is " + state, false
	case "exited":
		return place.Paused, "its programs have ended (" + text + "); its files are there", true
	case "removing":
		return place.Missing, "it is being removed", false
	case "dead":
		return place.Error, "its container is dead: the engine could not remove all of it; " +
			"delete it", false
	}
	return place.Unknown, fmt.Sprintf("the engine calls its container %q", state), false
}

// foreignAge is the age from which a box in a pool counts as abandoned if its maker is on another
// machine. A pool replaces its boxes when they are half as old.
const foreignAge = 24 * time.Hour

// isOrphan reports whether the process that made a box is certainly gone.
func isOrphan(labels map[string]string, r *place.Record) bool {
	if labels[makerLabel] == thisProcess {
		return false
	}
	pid, err := strconv.Atoi(labels["sandshell.pid"])
	switch {
	case err != nil:
		return false
	case labels["sandshell.host"] != remotebox.HostID():
		return r.ID == "" && time.Since(r.Created) > foreignAge
	}
	return pid == os.Getpid() || remotebox.ProcessGone(pid)
}
