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

// Ready waits until the pod's container runs. Its errors are those of Endpoint.NewError. When ctx
// ends, the error says what the pod waits for, and wraps that of ctx.
func (p *Pod) Ready(ctx context.Context) (err error) {
	stop := p.reportProgress(ctx)
	defer func() {
		if panicked := stop(); err == nil {
			err = panicked
		}
	}()
	errRuns := errors.New("the pod runs")
	var last *corev1.Pod
	err = p.cluster.follow(ctx, p.Name, p.version, func(pod *corev1.Pod) error {
		if pod == nil || pod.UID != p.UID {
			return p.cluster.public(&Error{Reason: Ended,
				Said: "the pod was deleted before it ran"})
		}
		last = pod
		if status := boxStatus(pod); status != nil && status.State.Running != nil {
			return errRuns
		}
		if failure := p.failure(pod); failure != nil {
			return p.cluster.public(failure)
		}
		return nil
	})
	if err == errRuns {
		return nil
	}
	if ctx.Err() != nil && last != nil {
		delay := p.delay(last)
		if warning := p.lastWarning(ctx); warning != "" && delay.Reason == NotStarted {
			delay.Said += ": " + warning
		}
		delay.Err = ctxerr.Of(ctx)
		return p.cluster.public(delay)
	}
	return err
}

// lastWarning returns the text of the last warning among the pod's events. It returns "" if there
// is none, or if the account may not read events.
func (p *Pod) lastWarning(ctx context.Context) string {
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

// reportProgress calls Progress with the cluster's events about the pod, until stop is called. stop
// waits for the last call. If Progress has panicked, stop returns an error.
func (p *Pod) reportProgress(ctx context.Context) (stop func() error) {
	if p.Progress == nil {
		return func() error { return nil }
	}
	var panicked error
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		w, err := p.cluster.Events.Watch(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.uid=" + string(p.UID)})
		if err != nil {
			// Nothing else needs the right to watch events, so this is no error.
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
		reporting.Wait()
		return panicked
	}
}

// boxStatus returns the status of the pod's container. It returns nil if there is none yet.
func boxStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == container {
			return s
		}
	}
	return nil
}

// failure returns why the pod will never run. It returns nil if the pod may still run.
func (p *Pod) failure(pod *corev1.Pod) *Error {
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses,
		pod.Status.ContainerStatuses} {
		for _, s := range containers {
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
		found := p.diagnose(pod)
		return &Error{Reason: Ended, Said: found.Lost}
	}
	return nil
}

func noImage(image string, w *corev1.ContainerStateWaiting) *Error {
	return &Error{Reason: NoImage, Said: fmt.Sprintf("image %q: %s: %s", image, w.Reason,
		w.Message),
		Do: "check the image's name and whether the nodes may pull it (Config.PullSecrets) or " +
			"have it (Config.Pull)"}
}

// advice returns what to do about a container that does not start.
func (p *Pod) advice(message string) string {
	switch {
	case strings.Contains(message, "runAsNonRoot"), strings.Contains(message, "run as root"):
		return `set Config.User to a number other than 0, or to "root" if that is meant`
	case strings.Contains(message, `"sh"`):
		return "the image has no sh: give an image with a shell, or set Config.BoxdImage"
	case strings.Contains(message, "another version"):
		return "build Config.BoxdImage again, with the boxd of this version (kubebox.WriteBoxd)"
	case strings.Contains(message, "not found"):
		return "create what Config.Mounts names, or correct Config.Mounts"
	}
	return ""
}

// delay returns what a pod that did not run in time waits for.
func (p *Pod) delay(pod *corev1.Pod) *Error {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return &Error{Reason: Unschedulable, Said: "no node takes the pod: " + c.Message,
				Do: "ask for less (Config.CPUs, Memory, EphemeralStorage), correct NodeSelector " +
					"and Tolerations, or add a node"}
		}
	}
	state := string(pod.Status.Phase)
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses,
		pod.Status.ContainerStatuses} {
		for _, s := range containers {
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
		Do: "check that what Config.Mounts names exists, and allow more time " +
			"(Config.StartTimeout) if the image had to be pulled"}
}
