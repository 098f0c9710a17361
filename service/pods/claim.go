package pods

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service/place"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A claim is a ConfigMap that says which pod has an ID. Its name is made from the ID, and the pod
// owns it. The API server gives a name to only one object, so if several pods claim an ID, one gets
// it. A claim whose pod is gone does not count. The cluster's garbage collection removes it later.

// hashOf returns a hash that replaces an ID where not every ID is valid.
func hashOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:20])
}

// labelOf returns idLabel's value for an ID. Two IDs may have the same value, because an ID may
// look like the hash of another.
func labelOf(id string) string {
	if len(validation.IsValidLabelValue(id)) > 0 {
		return hashOf(id)
	}
	return id
}

// claim claims an ID for a pod. The error is place.ErrConflict if another pod has it.
func (p *Place) claim(ctx context.Context, id, pod string, uid types.UID) error {
	name := fmt.Sprintf("sandshell-%s-%s", p.service, hashOf(id))
	claim := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{kube.ServiceLabel: p.service},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod,
				UID: uid}},
		},
		Immutable: new(true), Data: map[string]string{"id": id},
	}
	for {
		_, err := p.cluster.ConfigMaps.Create(ctx, claim, metav1.CreateOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("claim the id: %w", p.explain(err, "create", name))
		}
		other, err := p.cluster.ConfigMaps.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("claim the id: %w", p.explain(err, "get", name))
		}
		valid, err := p.valid(ctx, other)
		switch {
		case err != nil:
			return err
		case owns(other, uid): // an earlier answer was lost
			return nil
		case valid:
			return fmt.Errorf("%w: there is a box %s already", place.ErrConflict, id)
		}
		err = p.cluster.ConfigMaps.Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &other.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("remove the claim of a box that is gone: %w",
				p.explain(err, "delete", name))
		}
	}
}

func (p *Place) explain(err error, verb, name string) error {
	err = p.cluster.Explain(err, verb, "configmaps", name)
	var e *kubebox.Error
	if errors.As(err, &e) && e.Reason == kubebox.Forbidden {
		e.Do = "give it the Role that pods.Role has"
	}
	return err
}

// newError makes the public error of an error of package kube.
func newError(e *kube.Error) error {
	return &kubebox.Error{Reason: kubebox.Reason(e.Reason), Said: e.Said, Do: e.Do, Err: e.Err}
}

// owns reports whether a pod owns a claim.
func owns(claim *corev1.ConfigMap, pod types.UID) bool {
	return len(claim.OwnerReferences) > 0 && claim.OwnerReferences[0].UID == pod
}

// valid reports whether the pod of a claim exists.
func (p *Place) valid(ctx context.Context, claim *corev1.ConfigMap) (bool, error) {
	if len(claim.OwnerReferences) == 0 {
		return false, nil
	}
	of := claim.OwnerReferences[0]
	pod, err := p.cluster.Pods.Get(ctx, of.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, p.cluster.Explain(err, "get", "pods", of.Name)
	}
	return pod.UID == of.UID, nil
}

// Name implements place.Place. It claims the ID, and then writes it on the pod.
func (p *Place) Name(ctx context.Context, handle, id string) error {
	name, uid := parseHandle(handle)
	if err := p.claim(ctx, id, name, uid); err != nil {
		return err
	}
	err := p.patch(ctx, handle, operation{"add", "/metadata/labels/" + idLabel, labelOf(id)},
		annotation("add", idNote, id))
	if err != nil {
		return fmt.Errorf("name the box: %w", err)
	}
	return nil
}
