package pods

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/service/place"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A claim says which pod has an ID: a ConfigMap that is named for the ID, and that the pod owns.
// The API server gives a name to one only, so of several pods that are to have an ID one gets it. A
// claim whose pod is gone is none; the cluster's garbage collection removes it in the end.

// hashOf stands for an ID where not every ID can.
func hashOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:20])
}

// labelOf is idLabel's value. Two IDs may have the same, one of them on purpose.
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
		case owns(other, uid): // the answer to the creation was lost
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
	var e *kube.Error
	if errors.As(err, &e) && e.Reason == kube.Forbidden {
		e.Do = "give it the Role that pods.Role has"
	}
	return err
}

func owns(claim *corev1.ConfigMap, pod types.UID) bool {
	return len(claim.OwnerReferences) > 0 && claim.OwnerReferences[0].UID == pod
}

// valid reports whether the pod of a claim is there.
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

// Name implements place.Place: the claim first, then the pod says so.
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
