package kube

import (
	"context"
	"errors"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// followPause is how long follow waits if the API server does not answer.
const followPause = 200 * time.Millisecond

// follow calls see with the pod of that name, and again after each change. If there is no such pod,
// see gets nil. follow ends when see returns an error, which it returns, when ctx ends, or when the
// API server refuses the request. While the server does not answer, follow waits. version is that
// of the pod that the caller has seen; if it is "", follow begins with the pod as it is.
func (c *Cluster) follow(ctx context.Context, name, version string,
	see func(*corev1.Pod) error) error {
	for {
		var err error
		if version == "" {
			var pod *corev1.Pod
			pod, err = c.Pods.Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				pod, err = nil, nil
			case err != nil:
				pod = nil
			default:
				version = pod.ResourceVersion
			}
			if err == nil {
				if err := see(pod); err != nil {
					return err
				}
			}
		}
		if err == nil {
			err = c.watch(ctx, name, &version, see)
		}
		var seen *seenError
		switch {
		case errors.As(err, &seen):
			return seen.error
		case ctx.Err() != nil:
			return ctxerr.Of(ctx)
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return c.Explain(err, "watch", "pods", name)
		case err != nil:
			c.log.Debug("follow a pod", "pod", name, "error", err)
			select {
			case <-time.After(followPause):
			case <-ctx.Done():
			}
			version = ""
		}
	}
}

// A seenError is an error that follow's see has returned.
type seenError struct{ error }

// watch calls see with each change until the server ends the watch, which it does after some
// minutes.
func (c *Cluster) watch(ctx context.Context, name string, version *string,
	see func(*corev1.Pod) error) error {
	w, err := c.Pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name,
		ResourceVersion: *version})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object) // such as 410: the version is too old
		}
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		*version = pod.ResourceVersion
		if e.Type == watch.Deleted {
			pod = nil
		}
		if err := see(pod); err != nil {
			return &seenError{err}
		}
	}
	return nil
}

// Changes calls see with each change, since version, of the pods that selector selects. It calls
// begun, if that is not nil, once the server tells of changes. It returns when ctx or the server
// ends the watch. A deleted pod is passed in its last state.
func (c *Cluster) Changes(ctx context.Context, selector, version string, begun func(),
	see func(pod *corev1.Pod, deleted bool)) error {
	w, err := c.Pods.Watch(ctx, metav1.ListOptions{LabelSelector: selector,
		ResourceVersion: version})
	if err != nil {
		return c.Explain(err, "watch", "pods", "")
	}
	defer w.Stop()
	if begun != nil {
		begun()
	}
	for e := range w.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			return apierrors.FromObject(e.Object) // such as 410: the version is too old
		}
		see(pod, e.Type == watch.Deleted)
	}
	return nil
}
