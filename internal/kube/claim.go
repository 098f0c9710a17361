package kube

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"time"

	"github.com/sandshell/sandshell/internal/remotebox"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Claim changes what ClaimLabel says of a pod, for this process, unless it says something else than
// from by now, or the pod is gone: then it reports false. Of several who claim a pod at once, the
// API server lets one: it applies a patch, tests and all, to what it has read, writes that only if
// etcd still has the revision that it has read, and else reads and tests again (jsonPatcher in
// k8s.io/apiserver/pkg/endpoints/handlers/patch.go, called by GuaranteedUpdate in
// pkg/storage/etcd3/store.go). A test of resourceVersion would guard no better, and fail for each
// change of somebody else's, as the kubelet's of the status.
func (c *Cluster) Claim(ctx context.Context, name string, uid types.UID, from,
	to string) (bool, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	patch, err := json.Marshal([]operation{
		{"test", "/metadata/uid", string(uid)},
		{"test", "/metadata/labels/" + ClaimLabel, from},
		{"replace", "/metadata/labels/" + ClaimLabel, to},
		{"replace", "/metadata/labels/" + PIDLabel, strconv.Itoa(os.Getpid())},
		{"replace", "/metadata/annotations/" + hostNote, remotebox.HostID()},
	})
	if err != nil {
		return false, err
	}
	_, err = c.Pods.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	}
	return false, c.explain(err, "patch", "pods", name)
}

// FollowPool calls see when pods of a pool are no longer there for whoever is first, until ctx
// ends: with the ids of those, or, at first and after a break in what the API server tells, with
// the ids of all that are.
func (c *Cluster) FollowPool(ctx context.Context, pool string,
	see func(gone, ready map[types.UID]bool)) {
	for ctx.Err() == nil {
		if err := c.followPool(ctx, pool, see); err != nil && ctx.Err() == nil {
			c.log.Debug("follow a pool", "pool", pool, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
}

func (c *Cluster) followPool(ctx context.Context, pool string,
	see func(gone, ready map[types.UID]bool)) error {
	o := metav1.ListOptions{LabelSelector: PoolLabel + "=" + pool}
	pods, err := c.Pods.List(ctx, o)
	if err != nil {
		return err
	}
	ready := map[types.UID]bool{}
	for i := range pods.Items {
		if takeable(&pods.Items[i]) {
			ready[pods.Items[i].UID] = true
		}
	}
	see(nil, ready)
	return c.Changes(ctx, o.LabelSelector, pods.ResourceVersion,
		func(pod *corev1.Pod, deleted bool) {
			if deleted || !takeable(pod) {
				see(map[types.UID]bool{pod.UID: true}, nil)
			}
		})
}

// takeable reports whether a pod of a pool is there for whoever is first, or will be.
func takeable(pod *corev1.Pod) bool {
	return pod.Labels[ClaimLabel] != Claimed && pod.DeletionTimestamp == nil &&
		pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}
