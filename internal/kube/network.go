package kube

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// policyName is the namespace's one policy: it denies all to the pods that have NetworkLabel. One
// for each pod would cost each node that enforces them.
const policyName = "sandshell-none"

// DenyNetwork sees to it that the namespace has the policy.
func (c *Cluster) DenyNetwork(ctx context.Context) error {
	verb := "get"
	_, err := c.Policies.Get(ctx, policyName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		verb = "create"
		_, err = c.Policies.Create(ctx, &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: policyName,
				Labels: map[string]string{VersionLabel: ""}},
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{
					NetworkLabel: "none"}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress,
					networkingv1.PolicyTypeEgress},
			},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
	}
	if err != nil {
		return c.explain(err, verb, "networkpolicies", policyName)
	}
	return nil
}

// AllowNetwork removes the policy, unless a pod needs it.
func (c *Cluster) AllowNetwork(ctx context.Context) error {
	boxes, err := c.List(ctx, NetworkLabel+"=none")
	if err != nil {
		return err
	}
	for _, b := range boxes {
		return fmt.Errorf("the policy %s stays: box %s needs it", policyName, b.Name)
	}
	err = c.Policies.Delete(ctx, policyName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return c.explain(err, "delete", "networkpolicies", policyName)
	}
	return nil
}
