package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Listed is what List tells of a pod.
type Listed struct {
	UID         types.UID
	Name, Image string
	Node        string
	// "Pending", "Running", "Succeeded", "Failed", "Unknown", as the cluster has it, or
	// "Terminating"
	State   string
	Created time.Time
	Keep    bool
	Host    string // where the process is that made it, as remotebox.HostID has it there
	PID     int    // that process's id on Host
	Labels  map[string]string
}

// List finds the boxes in the namespace, and what is left of them. selector narrows them down by
// their labels; "" does not.
func (c *Cluster) List(ctx context.Context, selector string) ([]Listed, error) {
	if selector != "" {
		selector = "," + selector
	}
	pods, err := c.Pods.List(ctx, metav1.ListOptions{LabelSelector: BoxLabel + selector})
	if err != nil {
		return nil, fmt.Errorf("list boxes: %w", c.explain(err, "list", "pods", ""))
	}
	var boxes []Listed
	for i := range pods.Items {
		pod := &pods.Items[i]
		box := Listed{
			UID: pod.UID, Name: pod.Name, Image: pod.Spec.Containers[0].Image,
			Node: pod.Spec.NodeName, State: string(pod.Status.Phase),
			Created: pod.CreationTimestamp.Time, Labels: pod.Labels,
			Keep: pod.Labels[KeepLabel] != "", Host: pod.Annotations[hostNote],
		}
		if pod.DeletionTimestamp != nil {
			box.State = "Terminating"
		}
		box.PID, _ = strconv.Atoi(pod.Labels[PIDLabel])
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
			Reason: "there is no such pod; kubebox.Cluster.List returns those there are",
			Cause:  sandbox.LostRemoved}
	case pod.Labels[BoxLabel] == "":
		return nil, errors.New("it is a pod, but not one of sandshell's")
	}
	p := &Pod{
		Name: pod.Name, UID: pod.UID, Box: pod.Labels[BoxLabel], cluster: c,
		Spec: Spec{Pod: *pod, Keep: pod.Labels[KeepLabel] != "", Logger: log},
	}
	p.brought.Store(true)
	if fate := p.fateOf(pod); fate.Lost != "" {
		return nil, &sandbox.LostError{Box: "KubeBox", Reason: fate.Lost, Cause: fate.Cause}
	}
	if s := boxStatus(pod); s == nil || s.State.Running == nil {
		return nil, errors.New("its pod does not run yet")
	}
	if p.Linger, err = time.ParseDuration(pod.Annotations[lingerNote]); err != nil {
		return nil, fmt.Errorf("its annotation %s: %w", lingerNote, err)
	}
	return p, nil
}

// find finds a pod by its UID or its name: nil if there is none.
func (c *Cluster) find(ctx context.Context, id string) (*corev1.Pod, error) {
	pod, err := c.Pods.Get(ctx, id, metav1.GetOptions{})
	switch {
	case err == nil:
		return pod, nil
	case !apierrors.IsNotFound(err):
		return nil, c.explain(err, "get", "pods", id)
	}
	// no field selector knows a UID
	pods, err := c.Pods.List(ctx, metav1.ListOptions{LabelSelector: BoxLabel})
	if err != nil {
		return nil, c.explain(err, "list", "pods", id)
	}
	for i := range pods.Items {
		if string(pods.Items[i].UID) == id {
			return &pods.Items[i], nil
		}
	}
	return nil, nil
}

// RemoveBox removes a box, whoever made it. One that is not there is no error.
func (c *Cluster) RemoveBox(ctx context.Context, id string) error {
	pod, err := c.find(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("remove box %q: %w", id, err)
	case pod == nil:
		return nil
	case pod.Labels[BoxLabel] == "":
		return fmt.Errorf("remove box %q: it is a pod, but not one of sandshell's", id)
	}
	return (&Pod{Name: pod.Name, UID: pod.UID, Box: pod.Labels[BoxLabel], cluster: c}).Remove(ctx)
}

// reapAge applies to a pod that does not run yet and whose owner is on another machine: once it is
// so old, the owner has given it up.
const reapAge = 10 * time.Minute

// Reap removes what is left of boxes whose owners have ended: pods that have ended too, or have not
// begun to run; and pods that this process could not remove when it wanted to. It returns how many
// it has removed.
func (c *Cluster) Reap(ctx context.Context, log *slog.Logger) (removed int, err error) {
	boxes, err := c.List(ctx, "")
	if err != nil {
		return 0, err
	}
	host := remotebox.HostID()
	var errs []error
	seen := map[string]bool{}
	for _, b := range boxes {
		ours := b.Host == host && b.PID > 0
		box := b.Labels[BoxLabel]
		seen[box] = true
		orphan := ours && orphans.Has(box)
		ended := b.State == string(corev1.PodSucceeded) || b.State == string(corev1.PodFailed)
		switch {
		case orphan:
		case ended && b.Labels[ServiceLabel] != "":
			continue
		case !ended && b.State != string(corev1.PodPending):
			continue
		case ours && !remotebox.ProcessGone(b.PID):
			continue
		case !ours && !ended && c.clock.now().Sub(b.Created) < reapAge:
			continue
		}
		log.Debug("removing what is left of a box", "pod", b.Name, "host", b.Host, "pid", b.PID)
		if err := c.delete(ctx, b.Name, b.UID, 1); err != nil {
			errs = append(errs, fmt.Errorf("remove pod %s: %w", b.Name, err))
			continue
		}
		removed++
		orphans.Remove(box)
	}
	orphans.Forget(seen)
	return removed, errors.Join(errs...)
}
