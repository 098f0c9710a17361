package kubebox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/internal/kube"
)

// A BoxInfo describes a box, or what is left of one.
type BoxInfo struct {
	ID    string // the pod's UID
	Name  string // the pod's name
	Image string
	Node  string // "" while the pod has no node
	// State is "Terminating" if the pod is being deleted. Otherwise it is the pod's phase:
	// "Pending", "Running", "Succeeded", "Failed" or "Unknown".
	State   string
	Created time.Time
	Keep    bool              // see Config.Keep
	Owner   Owner             // the process that made the box; another may have attached since
	Labels  map[string]string // all labels of the pod
}

// An Owner is a process that made a box.
type Owner struct {
	// Host is the result of os.Hostname in that process. If the process runs in a container,
	// " pid:[…]" follows, which is the container's PID namespace.
	Host string
	PID  int
}

// Age returns the time since the box was made.
func (b BoxInfo) Age() time.Duration { return time.Since(b.Created) }

// List returns the boxes in the namespace, including those that have ended and whose pods are still
// there.
func (c Cluster) List(ctx context.Context) ([]BoxInfo, error) {
	var list []kube.Listed
	err := c.do(func(k *kube.Cluster) (err error) {
		list, err = k.List(ctx, "")
		return err
	})
	if err != nil {
		return nil, err
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
