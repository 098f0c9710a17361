package kube

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Spec says which pod to make. Pod is as users want it, with one container: Create adds boxd,
// labels, and what follows from Keep.
type Spec struct {
	Name string // "": one of its own
	Pod  corev1.Pod

	// an image that has boxd; "": boxd is brought by exec, and the image has a shell
	BoxdImage string
	Linger    time.Duration                     // how long boxd goes on without an owner
	Keep      bool                              // boxd goes on without an owner for ever
	Patience  time.Duration                     // how long the pod waits for boxd to be brought
	Progress  func(pod, status, message string) // if it panics, Ready fails
	Logger    *slog.Logger
}

// A Pod is a pod of this package, from before its creation until after its removal. Once Create has
// returned, its methods may be called from several goroutines.
type Pod struct {
	Name string
	UID  types.UID // "" until it is known
	Box  string    // the label that tells it from any other
	Spec

	cluster *Cluster
	version string      // of the object, as the creation has returned it
	brought atomic.Bool // boxd is there
}

// container is the name of the pod's container.
const container = "box"

// Container is the name of the pod's container that has boxd.
func (p *Pod) Container() string { return container }

// Address is the pod's own address in the cluster's network.
func (p *Pod) Address(ctx context.Context) (string, error) {
	pod, err := p.cluster.Pods.Get(ctx, p.Name, metav1.GetOptions{})
	if err != nil {
		return "", p.cluster.explain(err, "get", "pods", p.Name)
	}
	return pod.Status.PodIP, nil
}

func (c *Cluster) newPod(s Spec) *Pod {
	p := &Pod{Name: s.Name, Box: strings.ToLower(rand.Text()[:16]), Spec: s, cluster: c}
	if p.Name == "" {
		p.Name = "sandshell-" + p.Box
	}
	p.brought.Store(s.BoxdImage != "")
	return p
}

// Create creates a pod. Even if Create fails, there may be one: call Remove in any case where the
// Pod is not nil. Ready waits for it.
//
// The end of ctx does not cut the creation short: the API server may finish a cancelled creation
// after Remove has found nothing to remove.
func (c *Cluster) Create(ctx context.Context, s Spec) (*Pod, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	creation, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	p := c.newPod(s)
	created, err := c.Pods.Create(creation, p.object(), metav1.CreateOptions{})
	if err != nil {
		// Without an answer there may be a pod, or come to be one after Remove.
		if _, answered := err.(apierrors.APIStatus); !answered {
			orphans.Add(p.Box)
		}
		return p, c.explain(err, "create", "pods", p.Name)
	}
	p.UID, p.version = created.UID, created.ResourceVersion
	return p, nil
}

// object is the pod as the API server gets it.
func (p *Pod) object() *corev1.Pod {
	o := p.Pod.DeepCopy()
	o.Name = p.Name
	o.Labels, o.Annotations = p.mark(o.Labels, o.Annotations)
	o.Spec.RestartPolicy = corev1.RestartPolicyNever
	// boxd ends all that runs; what does not end is killed
	o.Spec.TerminationGracePeriodSeconds = new(int64(1))
	c := &o.Spec.Containers[0]
	c.Name = container
	c.Stdin, c.StdinOnce, c.TTY = true, false, false // for clients that claim the box
	serve := []string{wire.Path, "serve", "-linger", p.Linger.String()}
	if p.Keep {
		serve = append(serve, "-keep")
	}
	serve = append(serve, p.Box)
	const volume = "sandshell"
	o.Spec.Volumes = append(o.Spec.Volumes, corev1.Volume{Name: volume,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	mount := corev1.VolumeMount{Name: volume, MountPath: wire.Dir}
	if p.BoxdImage == "" {
		c.Command = slices.Concat([]string{"sh", "-c", waitForBoxd, "sh",
			strconv.Itoa(int(p.Patience / waitPause))}, serve)
	} else {
		o.Spec.InitContainers = append(o.Spec.InitContainers, corev1.Container{
			Name: "boxd", Image: p.BoxdImage, ImagePullPolicy: c.ImagePullPolicy,
			SecurityContext: initContext(c.SecurityContext),
			// a quota wants to know, and what is as much as the box's costs nothing more
			Resources:                *c.Resources.DeepCopy(),
			Command:                  slices.Concat([]string{"/boxd", "install", wire.Dir}, sums()),
			VolumeMounts:             []corev1.VolumeMount{mount},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		})
		c.Command = serve
		mount.ReadOnly = true
	}
	c.VolumeMounts = append(c.VolumeMounts, mount)
	return o
}

// initContext is the security context of the container that has nothing but boxd.
func initContext(of *corev1.SecurityContext) *corev1.SecurityContext {
	s := of.DeepCopy()
	if s != nil {
		s.ReadOnlyRootFilesystem, s.Capabilities = new(true),
			&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	return s
}

// sums are the checksums of the boxds that this library carries.
func sums() (all []string) {
	for _, arch := range bin.Architectures {
		all = append(all, bin.For(arch).Sum)
	}
	return all
}

// removeLimit bounds a removal; after half of it, the kubelet does not answer, and its word is not
// waited for.
const removeLimit = 30 * time.Second

// Remove removes the pod, with what runs in it, and waits until it is gone. It is no error if there
// is none. Remove does not end with ctx, which has often ended already, but has a limit of its own.
// After an error, a later Reap of this process removes the pod.
func (p *Pod) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	err := p.remove(ctx)
	switch {
	case err != nil:
		orphans.Add(p.Box)
		return fmt.Errorf("remove pod %s: %w", p.Name, err)
	case p.UID != "":
		orphans.Remove(p.Box)
	}
	return nil
}

func (p *Pod) remove(ctx context.Context) error {
	uid := p.UID
	if uid == "" { // the answer to the creation was lost, or there was none
		there, err := p.cluster.Pods.Get(ctx, p.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return p.cluster.explain(err, "get", "pods", p.Name)
		case there.Labels[BoxLabel] != p.Box:
			return nil
		}
		uid = there.UID
	}
	orderly, cancel := context.WithTimeout(ctx, removeLimit/2)
	defer cancel()
	err := p.cluster.delete(orderly, p.Name, uid, 1)
	if err != nil && orderly.Err() != nil && ctx.Err() == nil {
		err = p.cluster.delete(ctx, p.Name, uid, 0)
	}
	return err
}

// delete deletes the pod of that id, and waits until it is gone.
func (c *Cluster) delete(ctx context.Context, name string, uid types.UID, grace int64) error {
	err := c.Pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace,
		Preconditions: &metav1.Preconditions{UID: &uid}})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// it is gone, or another has its name by now
		return nil
	case err != nil:
		return c.explain(err, "delete", "pods", name)
	}
	errGone := errors.New("it is gone")
	err = c.follow(ctx, name, "", func(pod *corev1.Pod) error {
		if pod == nil || pod.UID != uid {
			return errGone
		}
		return nil
	})
	if err == errGone {
		return nil
	}
	return err
}
