package kube

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// policyName is the name of the one policy of the namespace. It denies all traffic to the pods that
// have NetworkLabel. A policy for each pod would cost every node that enforces policies.
const policyName = "sandshell-none"

// DenyNetwork makes the policy unless the namespace has it.
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
		return c.Explain(err, verb, "networkpolicies", policyName)
	}
	return nil
}

// AllowNetwork removes the policy. If a box needs it, AllowNetwork returns an error.
func (c *Cluster) AllowNetwork(ctx context.Context) error {
	boxes, err := c.List(ctx, NetworkLabel+"=none")
	if err != nil {
		return err
	}
	for _, b := range boxes {
		return fmt.Errorf("remove the policy %s: box %s needs it: close the box first", policyName,
			b.Name)
	}
	err = c.Policies.Delete(ctx, policyName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return c.Explain(err, "delete", "networkpolicies", policyName)
	}
	return nil
}
