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

// Claim changes a pod's ClaimLabel from one value to another, and makes this process the pod's
// owner. It reports false if the label has another value, or if the pod is gone.
//
// If several programs claim a pod at once, one succeeds. The API server applies a patch with its
// tests to the object that it has read. It writes the result only if etcd still has the same
// revision, and otherwise reads and tests again (jsonPatcher in
// k8s.io/apiserver/pkg/endpoints/handlers/patch.go, called by GuaranteedUpdate in
// pkg/storage/etcd3/store.go). A test of resourceVersion would be no safer. It would fail for every
// change by others, such as the kubelet's changes of the status.
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
	return false, c.Explain(err, "patch", "pods", name)
}

// FollowPool calls changed when pods of a pool can no longer be taken, until ctx ends. gone has the
// ids of these pods. At first, and after each break in the watch, gone is nil and free has the ids
// of all pods that can be taken.
func (c *Cluster) FollowPool(ctx context.Context, pool string,
	changed func(gone, free map[types.UID]bool)) {
	for ctx.Err() == nil {
		if err := c.followPool(ctx, pool, changed); err != nil && ctx.Err() == nil {
			c.log.Debug("follow a pool", "pool", pool, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
}

func (c *Cluster) followPool(ctx context.Context, pool string,
	changed func(gone, free map[types.UID]bool)) error {
	o := metav1.ListOptions{LabelSelector: PoolLabel + "=" + pool}
	pods, err := c.Pods.List(ctx, o)
	if err != nil {
		return err
	}
	free := map[types.UID]bool{}
	for i := range pods.Items {
		if takeable(&pods.Items[i]) {
			free[pods.Items[i].UID] = true
		}
	}
	changed(nil, free)
	return c.Changes(ctx, o.LabelSelector, pods.ResourceVersion, nil,
		func(pod *corev1.Pod, deleted bool) {
			if deleted || !takeable(pod) {
				changed(map[types.UID]bool{pod.UID: true}, nil)
			}
		})
}

// takeable reports whether a program can take a pod of a pool, or will be able to.
func takeable(pod *corev1.Pod) bool {
	return pod.Labels[ClaimLabel] != Claimed && pod.DeletionTimestamp == nil &&
		pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}
