package pods

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service/place"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Place is a namespace of a cluster as a place.Place.
type Place struct {
	base    kubebox.Config
	cluster *kube.Cluster
	service string
	log     *slog.Logger
}

var _ place.Place = (*Place)(nil)

// New returns the place of base's cluster and namespace. Each box is a pod of base, changed by what
// its Spec says. base has what a Spec has no fields for, such as BoxdImage, PullSecrets,
// Tolerations and Deadline. The service sets Name and Keep itself.
func New(base kubebox.Config) *Place { return &Place{base: base} }

// Open implements place.Place. It finds the kubeconfig and makes no request, so the cluster need
// not answer yet.
func (p *Place) Open(name string, log *slog.Logger) (err error) {
	p.service, p.log = name, log
	if p.base.Logger == nil {
		p.base.Logger = log
	}
	p.cluster, err = kube.Open(kube.Endpoint{Kubeconfig: p.base.Kubeconfig, Context: p.base.Context,
		Namespace: p.base.Namespace, NewError: newError}, log)
	return err
}

// Close implements place.Place.
func (p *Place) Close() error {
	p.cluster.Close()
	return nil
}

// formatHandle returns the handle of a box: the pod's name, "/" and its UID. No two pods have the
// same name.
func formatHandle(name string, uid types.UID) string { return name + "/" + string(uid) }

func parseHandle(handle string) (name string, uid types.UID) {
	name, id, _ := strings.Cut(handle, "/")
	return name, types.UID(id)
}

// Create implements place.Place. It claims the ID last: if several processes make a box for an ID
// at once, one of them keeps its box.
func (p *Place) Create(ctx context.Context, r place.Request) (place.Attached, string, error) {
	c, err := p.config(r)
	if err != nil {
		return nil, "", err
	}
	c.Keep, c.Name = true, fmt.Sprintf("sandshell-%s-%s", p.service,
		strings.ToLower(rand.Text()[:16]))
	c.Labels, c.Annotations = clone(c.Labels), clone(c.Annotations)
	c.Labels[kube.ServiceLabel] = p.service
	if c.Annotations[madeNote], err = newMade(r); err != nil {
		return nil, "", err
	}
	c.Annotations[versionNote] = "0"
	if r.ID != "" {
		c.Labels[idLabel], c.Annotations[idNote] = labelOf(r.ID), r.ID
	}
	box, err := kubebox.New(ctx, c)
	if err != nil {
		return nil, "", err
	}
	if r.ID != "" {
		if err := p.claim(ctx, r.ID, box.PodName(), types.UID(box.PodUID())); err != nil {
			return nil, "", errors.Join(err, box.Close())
		}
	}
	return box, formatHandle(box.PodName(), types.UID(box.PodUID())), nil
}

// clone returns a copy of a map, which is not nil.
func clone(m map[string]string) map[string]string {
	c := map[string]string{}
	maps.Copy(c, m)
	return c
}

// Attach implements place.Place.
func (p *Place) Attach(ctx context.Context, handle string) (place.Attached, error) {
	name, _ := parseHandle(handle)
	box, err := p.base.Join(ctx, name)
	if err == nil {
		return box, nil
	}
	if _, looked := p.cluster.Pods.Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(
		looked) {
		err = place.ErrNotFound
	}
	return nil, fmt.Errorf("attach: %w", err)
}

// Remove implements place.Place. The cluster's garbage collection removes the claim.
func (p *Place) Remove(ctx context.Context, handle string) error {
	name, _ := parseHandle(handle)
	return p.cluster.RemoveBox(ctx, name)
}

// Tidy implements place.Place. It does nothing, because the cluster removes claims with their pods.
func (p *Place) Tidy(context.Context) error { return nil }

// Pause returns errors.ErrUnsupported: a cluster cannot pause pods. It implements place.Place.
func (p *Place) Pause(context.Context, string) error {
	return fmt.Errorf("%w: a cluster cannot pause pods: Delete ends the box", errors.ErrUnsupported)
}

// Resume implements place.Place. Pods are never paused, and one that has ended cannot be started
// again.
func (p *Place) Resume(ctx context.Context, handle, _ string) (place.Kept, error) {
	name, _ := parseHandle(handle)
	pod, err := p.cluster.Pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return place.KeptNothing, p.found(err, "get", name)
	}
	switch status, detail := statusOf(pod); status {
	case place.Running:
		return place.KeptAll, nil
	case place.Missing:
		return place.KeptNothing, fmt.Errorf("%s: %w", detail, place.ErrNotFound)
	default:
		return place.KeptNothing, fmt.Errorf("%w: it is %s: %s", place.ErrConflict, status,
			detail)
	}
}

// Suspend returns errors.ErrUnsupported: a cluster cannot write the memory of pods to disk. It
// implements place.Place.
func (p *Place) Suspend(context.Context, string) (string, error) {
	return "", fmt.Errorf("%w: a cluster cannot write pods to disk: copy what it has to keep by "+
		"CopyFrom, and Delete the box", errors.ErrUnsupported)
}

// Snapshot returns errors.ErrUnsupported: a cluster cannot make images of pods. It implements
// place.Place.
func (p *Place) Snapshot(context.Context, string) (string, error) {
	return "", fmt.Errorf("%w: a cluster cannot make images of pods: build an image that has what "+
		"the boxes need, and name it in a spec, or copy files by CopyFrom and CopyTo",
		errors.ErrUnsupported)
}

// found returns what an error of the API server means: place.ErrNotFound if there is no such pod.
func (p *Place) found(err error, verb, pod string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s pod %s: %w", verb, pod, place.ErrNotFound)
	}
	return p.cluster.Explain(err, verb, "pods", pod)
}
