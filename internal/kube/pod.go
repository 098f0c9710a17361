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

// A Spec says which pod to make.
type Spec struct {
	Name string // "" means a random name
	// Pod is the pod as the user wants it, with one container. Create adds boxd and the labels.
	Pod corev1.Pod

	// BoxdImage is an image that has boxd. If it is "", Join brings boxd by exec, which needs a
	// shell in the pod's image.
	BoxdImage string
	Linger    time.Duration                     // how long boxd goes on without an owner
	Keep      bool                              // boxd goes on without an owner for ever
	Outward   bool                              // boxd brings what leaves to the owner
	Patience  time.Duration                     // how long the pod waits for boxd to be brought
	Progress  func(pod, status, message string) // if it panics, Ready fails
	Logger    *slog.Logger
}

// A Pod is a pod that this package has made, or will make. Once Create has returned, its methods
// may be called from several goroutines.
type Pod struct {
	Name string
	UID  types.UID // "" until it is known
	Box  string    // the value of BoxLabel
	Spec

	cluster *Cluster
	version string      // the object's resourceVersion when it was created
	brought atomic.Bool // boxd is in the pod
}

// container is the name of the pod's container.
const container = "box"

// Container returns the name of the pod's container that has boxd.
func (p *Pod) Container() string { return container }

// Address returns the pod's IP address in the cluster's network.
func (p *Pod) Address(ctx context.Context) (string, error) {
	pod, err := p.cluster.Pods.Get(ctx, p.Name, metav1.GetOptions{})
	if err != nil {
		return "", p.cluster.Explain(err, "get", "pods", p.Name)
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

// Create creates a pod. Ready waits until it runs. Even if Create fails, there may be a pod: unless
// the result is nil, the caller must call Remove.
//
// The end of ctx does not cancel the creation, because the API server could finish a cancelled
// creation after Remove has found nothing to remove.
func (c *Cluster) Create(ctx context.Context, s Spec) (*Pod, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	creation, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	p := c.newPod(s)
	created, err := c.Pods.Create(creation, p.object(), metav1.CreateOptions{})
	if err != nil {
		// Without an answer, there may be a pod, or there may be one after Remove.
		if _, answered := err.(apierrors.APIStatus); !answered {
			orphans.Add(p.Box)
		}
		return p, c.Explain(err, "create", "pods", p.Name)
	}
	p.UID, p.version = created.UID, created.ResourceVersion
	return p, nil
}

// object returns the pod that Create sends to the API server.
func (p *Pod) object() *corev1.Pod {
	o := p.Pod.DeepCopy()
	o.Name = p.Name
	o.Labels, o.Annotations = p.addLabels(o.Labels, o.Annotations)
	o.Spec.RestartPolicy = corev1.RestartPolicyNever
	// boxd ends the programs of the box in less time than that.
	o.Spec.TerminationGracePeriodSeconds = new(int64(1))
	c := &o.Spec.Containers[0]
	c.Name = container
	c.Stdin, c.StdinOnce, c.TTY = true, false, false // for clients that claim the box
	serve := []string{wire.Path, "serve", "-linger", p.Linger.String()}
	if p.Keep {
		serve = append(serve, "-keep")
	}
	if p.Outward {
		serve = append(serve, "-outward")
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
			// A quota may ask for resources. Those of an init container are free up to the box's.
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

// initContext returns the security context of the init container, which has nothing but boxd.
func initContext(of *corev1.SecurityContext) *corev1.SecurityContext {
	s := of.DeepCopy()
	if s != nil {
		s.ReadOnlyRootFilesystem, s.Capabilities = new(true),
			&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	return s
}

// sums returns the checksums of the boxd programs that this library carries.
func sums() (all []string) {
	for _, arch := range bin.Architectures {
		all = append(all, bin.For(arch).Sum)
	}
	return all
}

// removeLimit bounds a removal. After half of it the kubelet counts as silent, and the pod is
// deleted without waiting for the kubelet.
const removeLimit = 30 * time.Second

// Remove removes the pod, with what runs in it, and waits until it is gone. If there is no pod, it
// returns nil. Remove does not end with ctx, which has often ended already: it has a limit of its
// own. If Remove fails, a later Reap of this process removes the pod.
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
	if uid == "" { // there was no answer to the creation
		there, err := p.cluster.Pods.Get(ctx, p.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return p.cluster.Explain(err, "get", "pods", p.Name)
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

// delete deletes the pod with that name and UID, and waits until it is gone.
func (c *Cluster) delete(ctx context.Context, name string, uid types.UID, grace int64) error {
	err := c.Pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace,
		Preconditions: &metav1.Preconditions{UID: &uid}})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // the pod is gone, or another pod has its name
	case err != nil:
		return c.Explain(err, "delete", "pods", name)
	}
	errGone := errors.New("the pod is gone")
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
