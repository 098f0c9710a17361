package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ready waits until the pod's container runs. Its errors are *Error, and those of ctx: where ctx
// has a deadline of the pod's, an *Error still says what is waited for.
func (p *Pod) Ready(ctx context.Context) (err error) {
	stop := p.tell(ctx)
	defer func() {
		if told := stop(); err == nil {
			err = told
		}
	}()
	errRuns := errors.New("it runs")
	var last *corev1.Pod
	err = p.cluster.follow(ctx, p.Name, p.version, func(pod *corev1.Pod) error {
		if pod == nil || pod.UID != p.UID {
			return &Error{Reason: Ended, Said: "the pod was deleted before it ran"}
		}
		last = pod
		if status := boxStatus(pod); status != nil && status.State.Running != nil {
			return errRuns
		}
		if stuck := p.stuck(pod); stuck != nil {
			return stuck
		}
		return nil
	})
	if err == errRuns {
		return nil
	}
	if ctx.Err() != nil && last != nil {
		waits := p.waits(last)
		if warning := p.warning(ctx); warning != "" && waits.Reason == NotStarted {
			waits.Said += ": " + warning
		}
		waits.Err = ctxerr.Of(ctx)
		return waits
	}
	return err
}

// warning is the last that the cluster's events warn of; "" if there is nothing, or the account may
// not read them.
func (p *Pod) warning(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	events, err := p.cluster.Events.List(ctx, metav1.ListOptions{
		FieldSelector: "type=Warning,involvedObject.uid=" + string(p.UID)})
	if err != nil || len(events.Items) == 0 {
		return ""
	}
	last := slices.MaxFunc(events.Items, func(a, b corev1.Event) int {
		return a.LastTimestamp.Compare(b.LastTimestamp.Time)
	})
	return last.Reason + ": " + last.Message
}

// tell passes the cluster's events about the pod on to Progress. The function that it returns ends
// that, waits for its end, and returns what Progress has panicked with.
func (p *Pod) tell(ctx context.Context) (stop func() error) {
	if p.Progress == nil {
		return func() error { return nil }
	}
	var panicked error
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		w, err := p.cluster.Events.Watch(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.uid=" + string(p.UID)})
		if err != nil {
			// the right to is not needed otherwise
			p.Logger.Debug("watch the pod's events", "error", err)
			return
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			event, ok := e.Object.(*corev1.Event)
			if !ok {
				continue
			}
			panicked = guard.Call("Config.Progress", func() error {
				p.Progress(p.Name, event.Reason, event.Message)
				return nil
			})
			if panicked != nil {
				return
			}
		}
	})
	return func() error {
		cancel()
		telling.Wait()
		return panicked
	}
}

// boxStatus is the status of the pod's container, nil if there is none yet.
func boxStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == container {
			return s
		}
	}
	return nil
}

// stuck says why the pod will not run, nil if it may.
func (p *Pod) stuck(pod *corev1.Pod) *Error {
	for _, of := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses,
		pod.Status.ContainerStatuses} {
		for _, s := range of {
			if w := s.State.Waiting; w != nil {
				switch w.Reason {
				case "ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName",
					"ImageInspectError", "RegistryUnavailable":
					return noImage(s.Image, w)
				case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
					return &Error{Reason: NotStarted, Said: w.Message, Do: p.advice(w.Message)}
				}
			}
			if t := s.State.Terminated; t != nil && (s.Name == container || t.ExitCode != 0) {
				said := fmt.Sprintf("container %s ended with status %d (%s)", s.Name, t.ExitCode,
					t.Reason)
				if t.Message != "" {
					said += ": " + strings.TrimSpace(t.Message)
				}
				return &Error{Reason: NotStarted, Said: said, Do: p.advice(t.Message)}
			}
		}
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded ||
		pod.DeletionTimestamp != nil {
		fate := p.fateOf(pod)
		return &Error{Reason: Ended, Said: fate.Lost}
	}
	return nil
}

func noImage(image string, w *corev1.ContainerStateWaiting) *Error {
	return &Error{Reason: NoImage, Said: fmt.Sprintf("image %q: %s: %s", image, w.Reason,
		w.Message),
		Do: "see that the name is right and that the nodes may pull it (Config.PullSecrets), or " +
			"that they have it (Config.Pull)"}
}

// advice says what to do when a container does not start.
func (p *Pod) advice(message string) string {
	switch {
	case strings.Contains(message, "runAsNonRoot"), strings.Contains(message, "run as root"):
		return `set Config.User to a number other than 0, or to "root" where that is meant`
	case strings.Contains(message, `"sh"`):
		return "the image has no sh: one with a shell is needed, or Config.BoxdImage"
	case strings.Contains(message, "another version"):
		return "make Config.BoxdImage anew, of the boxd of this version"
	case strings.Contains(message, "not found"):
		return "make what Config.Mounts names, or correct it"
	}
	return ""
}

// waits says what a pod waits for that did not run in time.
func (p *Pod) waits(pod *corev1.Pod) *Error {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return &Error{Reason: Unschedulable, Said: "no node takes the pod: " + c.Message,
				Do: "ask for less (Config.CPUs, Memory, EphemeralStorage), correct NodeSelector " +
					"and Tolerations, or add a node"}
		}
	}
	state := string(pod.Status.Phase)
	for _, of := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses,
		pod.Status.ContainerStatuses} {
		for _, s := range of {
			w := s.State.Waiting
			if w == nil {
				continue
			}
			if w.Reason == "ErrImagePull" {
				return noImage(s.Image, w)
			}
			state = w.Reason
		}
	}
	return &Error{Reason: NotStarted, Said: "the pod was still " + state +
		" at the end of Config.StartTimeout",
		Do: "see that what Config.Mounts names is there, and that the image, which takes longer " +
			"to pull the first time, had the time"}
}
