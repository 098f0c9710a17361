package kubebox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A Cluster is a namespace of a cluster with boxes in it, whoever made them. The zero value is what
// kubectl would use; in a pod, the cluster that the pod is on. Its methods may be called from
// several goroutines.
type Cluster struct {
	// Kubeconfig is a file as kubectl has. Default: KUBECONFIG's, else ~/.kube/config; where there
	// is none, in a pod, its service account.
	Kubeconfig string
	// Context is the one of the kubeconfig to use. Default: the current one.
	Context string
	// Namespace is where the boxes are. Default: the context's, and a pod's own.
	Namespace string
	// Logger gets what happens beside the results, and at debug level each command: see
	// shellbox.Options. Default: none.
	Logger *slog.Logger
}

// A BoxInfo tells of a box.
type BoxInfo struct {
	ID    string // the pod's UID
	Name  string // and its name
	Image string
	Node  string // "" while it has none
	// as the cluster has it: "Pending", "Running", "Succeeded", "Failed", "Unknown", or
	// "Terminating"
	State   string
	Created time.Time
	Keep    bool              // see Config.Keep
	Owner   Owner             // who made it; another may have attached to it since
	Labels  map[string]string // all of them
}

// An Owner is a process that made a box.
type Owner struct {
	// as os.Hostname has it there; in a container with " pid:[…]" behind it, its namespace of
	// process ids
	Host string
	PID  int
}

// Age is the time since the box was made.
func (b BoxInfo) Age() time.Duration { return time.Since(b.Created) }

// List finds the boxes of the default namespace, and what is left of them. It is Cluster.List.
func List(ctx context.Context) ([]BoxInfo, error) { return Cluster{}.List(ctx) }

// Attach takes over a running box by the pod's UID or name. It is Cluster.Attach.
func Attach(ctx context.Context, id string) (*KubeBox, error) { return Cluster{}.Attach(ctx, id) }

// Reap removes what is left of boxes whose owners have ended. It is Cluster.Reap.
func Reap(ctx context.Context) (removed int, err error) { return Cluster{}.Reap(ctx) }

// open finds the cluster.
func (c Cluster) open() (*kube.Cluster, error) {
	return kube.Open(kube.Endpoint{Kubeconfig: c.Kubeconfig, Context: c.Context,
		Namespace: c.Namespace}, c.log())
}

// List finds the boxes in the namespace, and what is left of them.
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

// connectLimit bounds Attach's connecting.
const connectLimit = 10 * time.Second

// Attach takes over a running box by the pod's UID or name: its sessions, with their directories,
// variables and unfinished commands, and its jobs with their logs (Session, Sessions, Job, Jobs).
// Runs that were under way are ended. Whoever had the box before, if still there, loses it: their
// calls return sandbox.ErrLost. The box is this program's from then on, with all that this means:
// unless it was made with Config.Keep, it ends when this program does. Of its plugins InitPlugins
// knows again when it is called. A pod that has been replaced by another of its name is a lost box.
func (c Cluster) Attach(ctx context.Context, id string) (*KubeBox, error) {
	cluster, err := c.open()
	var box *KubeBox
	if err == nil {
		defer cluster.Close()
		box, err = attach(ctx, cluster, id, c.log())
	}
	if err != nil {
		return nil, fmt.Errorf("kubebox: attach to box %q: %w", id, err)
	}
	return box, nil
}

func attach(ctx context.Context, cluster *kube.Cluster, id string,
	log *slog.Logger) (*KubeBox, error) {
	noAnswer := &sandbox.LostError{Box: "KubeBox", Reason: fmt.Sprintf("no answer within %v",
		connectLimit), Cause: sandbox.LostConnection}
	connecting, cancel := ctxerr.WithLimit(ctx, connectLimit, noAnswer)
	defer cancel()
	pod, err := cluster.Find(connecting, id, log)
	var h *host
	if err == nil {
		h, err = connect(connecting, cluster, pod)
	}
	if err != nil {
		if connecting.Err() != nil {
			err = ctxerr.Of(connecting)
		}
		return nil, err
	}
	box, err := shellbox.Attach(ctx, h, shellbox.Options{Logger: log})
	if err == nil {
		return newKubeBox(box, h), nil
	}
	if ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, connectLimit)
		defer cancel()
		if lost := h.Lost(asking); lost != nil {
			err = lost
		}
	}
	h.Abandon() // nobody has asked for the box's end
	h.Close()
	return nil, err
}

// Lost returns why the box is lost; nil if it is there, or if that is not known when ctx ends.
func (b *KubeBox) Lost(ctx context.Context) error { return b.host.Lost(ctx) }

// Reap removes what is left of boxes whose owners have ended: pods that have ended too, or have not
// begun to run. A box that runs is left alone: it is kept, or ends by itself. What this program
// could not remove, because the API server did not answer a New that failed or a Close, is removed
// too, whether it runs or not. It returns how many it has removed. What killed programs of this
// user have left of SSHConfig on this machine goes too.
func (c Cluster) Reap(ctx context.Context) (removed int, err error) {
	cluster, err := c.open()
	if err == nil {
		defer cluster.Close()
		removed, err = cluster.Reap(ctx, c.log())
	}
	if err = errors.Join(err, remotebox.ReapSSHConfigs(c.log())); err != nil {
		err = fmt.Errorf("kubebox: %w", err)
	}
	return removed, err
}

// Remove removes a box by the pod's UID or name, whoever made it and whether it runs or not. A
// program that works with it loses it. One that is not there is no error; a pod that is no box is.
func (c Cluster) Remove(ctx context.Context, id string) error {
	cluster, err := c.open()
	if err == nil {
		defer cluster.Close()
		err = cluster.RemoveBox(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("kubebox: %w", err)
	}
	return nil
}

// Prune removes the NetworkPolicy that NetworkNone has made in the namespace, unless a box still
// needs it.
func (c Cluster) Prune(ctx context.Context) error {
	cluster, err := c.open()
	if err == nil {
		defer cluster.Close()
		err = cluster.AllowNetwork(ctx)
	}
	if err != nil {
		return fmt.Errorf("kubebox: %w", err)
	}
	return nil
}
