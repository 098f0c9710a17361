package kubebox

import (
	"context"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/kube"
)

// A BoxInfo describes a box, or what is left of one.
type BoxInfo struct {
	ID    string // the pod's UID
	Name  string // the pod's name
	Image string
	Node  string // "" while the pod has no node
	// State is the cluster's word, "Pending", "Running", "Succeeded", "Failed" or "Unknown"; or
	// "Terminating", if the pod is being deleted.
	State   string
	Created time.Time
	Keep    bool              // see Config.Keep
	Owner   Owner             // the process that made the box; another may have attached since
	Labels  map[string]string // all labels of the pod
}

// An Owner is a process that made a box.
type Owner struct {
	// Host is os.Hostname there. In a container, " pid:[…]" follows, its namespace of process ids.
	Host string
	PID  int
}

// Age returns the time since the box was made.
func (b BoxInfo) Age() time.Duration { return time.Since(b.Created) }

// List returns the boxes in the namespace, and what is left of boxes.
func (c Cluster) List(ctx context.Context) ([]BoxInfo, error) {
	cluster, err := c.open()
	var list []kube.Listed
	if err == nil {
		defer cluster.Close()
		list, err = cluster.List(ctx, "")
	}
	if err != nil {
		return nil, fmt.Errorf("kubebox: %w", err)
	}
	var boxes []BoxInfo
	for _, b := range list {
		boxes = append(boxes, BoxInfo{
			ID: string(b.UID), Name: b.Name, Image: b.Image, Node: b.Node, State: b.State,
			Created: b.Created, Keep: b.Keep,
			Owner: Owner{Host: b.Host, PID: b.PID}, Labels: b.Labels,
		})
	}
	return boxes, nil
}
