package kube

import (
	"context"
	"fmt"
	"strings"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ client.Place = (*Pod)(nil)

// Fate implements client.Place: it asks the API server about the pod.
func (p *Pod) Fate(ctx context.Context) client.Fate {
	pod, err := p.cluster.Pods.Get(ctx, p.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return client.Fate{Lost: "the pod was deleted", Cause: sandbox.LostRemoved}
	case err != nil:
		return client.Fate{} // the API server is away, or says nothing: the box may go on
	}
	return p.fateOf(pod)
}

// FateOf is what has become of a box, by its pod; of one that is kept, only as far as its node is
// heard of.
func FateOf(pod *corev1.Pod) client.Fate { return new(Pod).fateOf(pod) }

// fateOf is what has become of the box, by the pod.
func (p *Pod) fateOf(pod *corev1.Pod) client.Fate {
	lost := func(cause sandbox.LostCause, format string, args ...any) client.Fate {
		how := strings.TrimSpace(fmt.Sprintf(format, args...))
		return client.Fate{Lost: printable.Text(how), Cause: cause}
	}
	if p.UID != "" && pod.UID != p.UID {
		return lost(sandbox.LostRemoved, "the pod was deleted, and another has its name now")
	}
	var ended *corev1.ContainerStateTerminated
	status := boxStatus(pod)
	if status != nil {
		ended = status.State.Terminated
	}
	over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	if ended != nil && ended.Reason == "OOMKilled" {
		limit := "its memory"
		if m := pod.Spec.Containers[0].Resources.Limits.Memory(); !m.IsZero() {
			limit = "its " + m.String()
		}
		return lost(sandbox.LostMemory, "out of memory: the pod used up %s and was killed", limit)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.DisruptionTarget || c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Reason {
		case "DeletionByTaintManager", "DeletionByPodGC":
			return lost(sandbox.LostNode, "the pod's node is gone, or may not have it any more: %s",
				c.Message)
		default:
			return lost(sandbox.LostEvicted, "the pod was evicted: %s: %s", c.Reason, c.Message)
		}
	}
	switch {
	case over && pod.Status.Reason == "Evicted":
		return lost(sandbox.LostEvicted, "the pod was evicted: %s", pod.Status.Message)
	case over && pod.Status.Reason == "DeadlineExceeded":
		return lost(sandbox.LostRemoved, "the pod's time was up: %s", pod.Status.Message)
	case over && (pod.Status.Reason == "Terminated" || pod.Status.Reason == "NodeShutdown" ||
		pod.Status.Reason == "NodeLost"):
		return lost(sandbox.LostNode, "the pod's node was shut down: %s", pod.Status.Message)
	case pod.DeletionTimestamp != nil:
		return lost(sandbox.LostRemoved, "the pod was deleted")
	case ended != nil && ended.ExitCode == 137: // nobody inside can kill process 1
		return lost(sandbox.LostRemoved, "the pod's container was killed: %s", ended.Message)
	case ended != nil:
		return lost(sandbox.LostEnded, "the pod's container ended with status %d %s",
			ended.ExitCode, ended.Message)
	case over:
		return lost(sandbox.LostUnknown, "the pod has ended: %s %s", pod.Status.Reason,
			pod.Status.Message)
	case pod.Status.Phase == corev1.PodUnknown, nodeSilent(pod) && !p.Keep:
		return lost(sandbox.LostNode, "the pod's node %s does not answer the cluster any more",
			pod.Spec.NodeName)
	}
	return client.Fate{}
}

// nodeSilent reports whether the cluster has not heard of the pod's node for long (40 or 50 s by
// default): then the node's controller says, without a reason, that the pod is not ready, though
// the last that the node has said is that its containers are. Unless the box is kept, boxd has
// ended by then.
func nodeSilent(pod *corev1.Pod) bool {
	var silent, ready bool
	for _, c := range pod.Status.Conditions {
		switch c.Type {
		case corev1.PodReady:
			silent = c.Status == corev1.ConditionFalse && c.Reason == ""
		case corev1.ContainersReady:
			ready = c.Status == corev1.ConditionTrue
		}
	}
	return silent && ready
}
