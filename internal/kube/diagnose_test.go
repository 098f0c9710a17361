package kube

import (
	"testing"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// running is a pod whose box works.
func running() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", UID: "1"},
		Spec: corev1.PodSpec{NodeName: "node1", Containers: []corev1.Container{
			{Name: container, Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
				Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady,
				Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: container, Ready: true, State: corev1.ContainerState{
					Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

func ends(pod *corev1.Pod, phase corev1.PodPhase, code int32, reason string) {
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
}

func disrupted(pod *corev1.Pod, reason string) {
	pod.DeletionTimestamp = &metav1.Time{}
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: reason, Message: "words"})
}

func TestFate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		keep   bool
		lost   string
		cause  sandbox.LostCause
	}{
		"works": {func(*corev1.Pod) {}, false, "", ""},
		"replaced": {func(p *corev1.Pod) {
			p.UID = "2"
		}, false, "the pod was deleted, and another pod has its name", sandbox.LostRemoved},
		"deleted": {func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{}
		}, false, "the pod was deleted", sandbox.LostRemoved},
		"out of memory": {func(p *corev1.Pod) {
			ends(p, corev1.PodFailed, 137, "OOMKilled")
		}, false,
			"out of memory: the pod used up its 64Mi and was killed", sandbox.LostMemory},
		"evicted by the API": {func(p *corev1.Pod) {
			disrupted(p, "EvictionByEvictionAPI")
		}, false, "the pod was evicted: EvictionByEvictionAPI: words", sandbox.LostEvicted},
		"preempted": {func(p *corev1.Pod) {
			disrupted(p, "PreemptionByScheduler")
		}, false, "the pod was evicted: PreemptionByScheduler: words", sandbox.LostEvicted},
		"tainted": {func(p *corev1.Pod) { disrupted(p, "DeletionByTaintManager") }, false,
			"the pod's node is gone, or may not run it: words", sandbox.LostNode},
		"evicted by the kubelet": {func(p *corev1.Pod) {
			ends(p, corev1.PodFailed, 137, "Error")
			p.Status.Reason, p.Status.Message = "Evicted", "low on ephemeral-storage"
		}, false, "the pod was evicted: low on ephemeral-storage", sandbox.LostEvicted},
		"time up": {func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "DeadlineExceeded"
		}, false, "the pod's time was up:", sandbox.LostRemoved},
		"shut down": {func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Terminated"
		}, false, "the pod's node was shut down:", sandbox.LostNode},
		"killed": {func(p *corev1.Pod) {
			ends(p, corev1.PodFailed, 137, "Error")
		}, false, "the pod's container was killed:", sandbox.LostRemoved},
		"ended": {func(p *corev1.Pod) {
			ends(p, corev1.PodSucceeded, 0, "Completed")
		}, false, "the pod's container ended with status 0", sandbox.LostEnded},
		"unknown": {func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodUnknown
		}, true, "the pod's node node1 does not answer the cluster", sandbox.LostNode},
		"silent": {func(p *corev1.Pod) {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
		}, false, "the pod's node node1 does not answer the cluster", sandbox.LostNode},
		"silent, kept": {func(p *corev1.Pod) {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
		}, true, "", ""},
		"ending": {func(p *corev1.Pod) {
			p.Status.Conditions[0].Status, p.Status.Conditions[0].Reason = corev1.ConditionFalse,
				"PodFailed"
		}, false, "", ""},
		"not there yet": {func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		}, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := running()
			c.change(pod)
			found := (&Pod{UID: "1", Spec: Spec{Keep: c.keep}}).diagnose(pod)
			require.Equal(t, c.lost, found.Lost)
			require.Equal(t, c.cause, found.Cause)
		})
	}
}

// TestStuck checks the errors that say what keeps a pod from running, and what to do about it.
func TestStuck(t *testing.T) {
	waiting := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Image = "image"
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
		}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		reason Reason // "": it may still run
		do     string
	}{
		"creating":    {waiting("ContainerCreating", ""), "", ""},
		"first pull":  {waiting("ErrImagePull", "unauthorized"), "", ""},
		"later pulls": {waiting("ImagePullBackOff", "unauthorized"), NoImage, "Config.PullSecrets"},
		"never":       {waiting("ErrImageNeverPull", "not present"), NoImage, "Config.Pull"},
		"root": {waiting("CreateContainerConfigError",
			"container has runAsNonRoot and image will run as root"), NotStarted, "Config.User"},
		"no secret": {waiting("CreateContainerConfigError", `secret "s" not found`), NotStarted,
			"Config.Mounts"},
		"no shell": {func(p *corev1.Pod) {
			ends(p, corev1.PodFailed, 128, "StartError")
			p.Status.ContainerStatuses[0].State.Terminated.Message = `exec: "sh": executable file not found in $PATH`
		}, NotStarted, "Config.BoxdImage"},
		"old boxd": {func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{
				{Name: "boxd", State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{
						ExitCode: 1,
						Message:  "this boxd is of another version than the client's"}}}}
		}, NotStarted, "Config.BoxdImage"},
		"evicted": {func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
		}, Ended, ""},
		"deleted": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, Ended, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := running()
			c.change(pod)
			stuck := (&Pod{UID: "1"}).failure(pod)
			if c.reason == "" {
				require.Nil(t, stuck)
				return
			}
			require.Equal(t, c.reason, stuck.Reason)
			require.Contains(t, stuck.Do, c.do)
			require.NotEmpty(t, stuck.Said)
		})
	}
}
