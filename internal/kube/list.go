package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Listed is a pod in the result of List.
type Listed struct {
	UID         types.UID
	Name, Image string
	Node        string
	// State is the pod's phase, or "Terminating" if the pod is being deleted.
	State   string
	Created time.Time
	Labels  map[string]string
	remotebox.Ownership
}

// List returns the boxes in the namespace that the label selector selects, including those that
// have ended. "" selects all.
func (c *Cluster) List(ctx context.Context, selector string) ([]Listed, error) {
	if selector != "" {
		selector = "," + selector
	}
	pods, err := c.Pods.List(ctx, metav1.ListOptions{LabelSelector: BoxLabel + selector})
	if err != nil {
		return nil, fmt.Errorf("list boxes: %w", c.Explain(err, "list", "pods", ""))
	}
	var boxes []Listed
	for i := range pods.Items {
		pod := &pods.Items[i]
		box := Listed{
			UID: pod.UID, Name: pod.Name, Image: pod.Spec.Containers[0].Image,
			Node: pod.Spec.NodeName, State: string(pod.Status.Phase),
			Created: pod.CreationTimestamp.Time, Labels: pod.Labels,
			Ownership: remotebox.ReadOwnership(pod.Labels, pod.Annotations[hostNote]),
		}
		if pod.DeletionTimestamp != nil {
			box.State = "Terminating"
		}
		boxes = append(boxes, box)
	}
	return boxes, nil
}

// Find finds a running box by the pod's UID or name.
func (c *Cluster) Find(ctx context.Context, id string, log *slog.Logger) (*Pod, error) {
	pod, err := c.find(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case pod == nil:
		return nil, &sandbox.LostError{Box: "KubeBox",
			Reason: "there is no such pod: kubebox.Cluster.List returns the boxes",
			Cause:  sandbox.LostRemoved}
	case pod.Labels[BoxLabel] == "":
		return nil, errors.New("the pod is not a box of sandshell")
	}
	p := &Pod{
		Name: pod.Name, UID: pod.UID, Box: pod.Labels[BoxLabel], cluster: c,
		Spec: Spec{Pod: *pod, Keep: pod.Labels[KeepLabel] != "", Logger: log},
	}
	p.brought.Store(true)
	if found := p.diagnose(pod); found.Lost != "" {
		return nil, &sandbox.LostError{Box: "KubeBox", Reason: found.Lost, Cause: found.Cause}
	}
	if s := boxStatus(pod); s == nil || s.State.Running == nil {
		return nil, errors.New("the pod does not run yet: try again later")
	}
	if p.Linger, err = time.ParseDuration(pod.Annotations[lingerNote]); err != nil {
		return nil, fmt.Errorf("read the pod's annotation %s: %w", lingerNote, err)
	}
	return p, nil
}

// find finds a pod by its UID or its name. It returns nil if there is none.
func (c *Cluster) find(ctx context.Context, id string) (*corev1.Pod, error) {
	pod, err := c.Pods.Get(ctx, id, metav1.GetOptions{})
	switch {
	case err == nil:
		return pod, nil
	case !apierrors.IsNotFound(err):
		return nil, c.Explain(err, "get", "pods", id)
	}
	// Kubernetes has no field selector for UIDs.
	pods, err := c.Pods.List(ctx, metav1.ListOptions{LabelSelector: BoxLabel})
	if err != nil {
		return nil, c.Explain(err, "list", "pods", id)
	}
	for i := range pods.Items {
		if string(pods.Items[i].UID) == id {
			return &pods.Items[i], nil
		}
	}
	return nil, nil
}

// RemoveBox removes a box, which any program may have made. If there is no such pod, it returns
// nil.
func (c *Cluster) RemoveBox(ctx context.Context, id string) error {
	pod, err := c.find(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("remove box %q: %w", id, err)
	case pod == nil:
		return nil
	case pod.Labels[BoxLabel] == "":
		return fmt.Errorf("remove box %q: the pod is not a box of sandshell", id)
	}
	return (&Pod{Name: pod.Name, UID: pod.UID, Box: pod.Labels[BoxLabel], cluster: c}).Remove(ctx)
}

// phase says how far the pod has got. A pod that is being deleted counts as running.
func (l Listed) phase() remotebox.Phase {
	switch l.State {
	case string(corev1.PodSucceeded), string(corev1.PodFailed):
		return remotebox.Ended
	case string(corev1.PodPending):
		return remotebox.NotStarted
	}
	return remotebox.Running
}

// Reap removes pods that have ended, or have not begun to run, and whose owners have ended. It also
// removes the orphans of this process. It returns how many it has removed.
func (c *Cluster) Reap(ctx context.Context, log *slog.Logger) (removed int, err error) {
	boxes, err := c.List(ctx, "")
	if err != nil {
		return 0, err
	}
	var errs []error
	seen := map[string]bool{}
	for _, b := range boxes {
		seen[b.Box] = true
		orphan := b.SameHost() && orphans.Has(b.Box)
		if !orphan && !b.Abandoned(b.phase(), c.clock.now().Sub(b.Created)) {
			continue
		}
		log.Debug("removing what is left of a box", "pod", b.Name, "host", b.Host, "pid", b.PID)
		if err := c.delete(ctx, b.Name, b.UID, 1); err != nil {
			errs = append(errs, fmt.Errorf("remove pod %s: %w", b.Name, err))
			continue
		}
		removed++
		orphans.Remove(b.Box)
	}
	orphans.Forget(seen)
	return removed, errors.Join(errs...)
}
