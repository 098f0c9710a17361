package sshbox

import (
	"context"
	"fmt"
	"time"
)

// A BoxInfo describes a box, or what is left of one.
type BoxInfo struct {
	ID    string // the container's id; on a machine, SSHBox.BoxID
	Name  string // the container's name
	Image string
	// State is in the engine's words: "running", "paused", "created", "exited", "dead" or
	// "removing".
	State   string
	Created time.Time
	Keep    bool              // see Config.Keep
	Owner   Owner             // the process that made the box, even if another has attached since
	Labels  map[string]string // all labels of the container
}

// An Owner is a process that made a box.
type Owner struct {
	// Host is the name of the machine where the process runs. If it runs in a container, its
	// namespace of process ids follows, as in "name pid:[4026532008]".
	Host string
	PID  int // the process id on Host
}

// Age returns the time since the box was made.
func (b BoxInfo) Age() time.Duration { return time.Since(b.Created) }

// List returns the boxes on the engine, of all programs, and what is left of boxes, the youngest
// first.
func (e Engine) List(ctx context.Context) ([]BoxInfo, error) {
	engine, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	list, err := engine.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	var boxes []BoxInfo
	for _, b := range list {
		boxes = append(boxes, BoxInfo{
			ID: b.ID, Name: b.Name, Image: b.Image, State: b.State, Created: b.Created,
			Keep: b.Keep, Owner: Owner{Host: b.Host, PID: b.PID}, Labels: b.Labels,
		})
	}
	return boxes, nil
}
