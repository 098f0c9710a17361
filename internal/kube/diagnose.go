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

// Diagnose implements client.Place. It asks the API server about the pod.
func (p *Pod) Diagnose(ctx context.Context) client.Diagnosis {
	pod, err := p.cluster.Pods.Get(ctx, p.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return client.Diagnosis{Lost: "the pod was deleted", Cause: sandbox.LostRemoved}
	case err != nil:
		return client.Diagnosis{} // the API server does not answer, so the box may go on
	}
	return p.diagnose(pod)
}

// Diagnose says what has become of a box, from its pod's object. If the pod's node does not answer,
// the box counts as lost, although a box that is kept may go on there.
func Diagnose(pod *corev1.Pod) client.Diagnosis { return new(Pod).diagnose(pod) }

// diagnose says what has become of the box, from the pod's object.
func (p *Pod) diagnose(pod *corev1.Pod) client.Diagnosis {
	lost := func(cause sandbox.LostCause, format string, args ...any) client.Diagnosis {
		how := strings.TrimSpace(fmt.Sprintf(format, args...))
		return client.Diagnosis{Lost: printable.Text(how), Cause: cause}
	}
	if p.UID != "" && pod.UID != p.UID {
		return lost(sandbox.LostRemoved, "the pod was deleted, and another pod has its name")
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
			return lost(sandbox.LostNode, "the pod's node is gone, or may not run it: %s",
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
	case ended != nil && ended.ExitCode == 137: // no process of the pod can kill process 1
		return lost(sandbox.LostRemoved, "the pod's container was killed: %s", ended.Message)
	case ended != nil:
		return lost(sandbox.LostEnded, "the pod's container ended with status %d %s",
			ended.ExitCode, ended.Message)
	case over:
		return lost(sandbox.LostUnknown, "the pod has ended: %s %s", pod.Status.Reason,
			pod.Status.Message)
	case pod.Status.Phase == corev1.PodUnknown, nodeSilent(pod) && !p.Keep:
		return lost(sandbox.LostNode, "the pod's node %s does not answer the cluster",
			pod.Spec.NodeName)
	}
	return client.Diagnosis{}
}

// nodeSilent reports whether the pod's node has not answered the cluster for long (40 or 50 s by
// default). The node controller then marks the pod as not ready, without a reason, although the
// node's own last report says that the containers are ready. By that time, boxd has ended unless
// the box is kept.
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
