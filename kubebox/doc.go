// Package kubebox provides sandboxes that are pods of a Kubernetes cluster: a [KubeBox] is a
// [sandbox.Sandbox]. It needs an account in a namespace of a cluster, with the rights that [Role]
// lists. It needs no controller, no CRD and no chart in the cluster.
//
//	box, err := kubebox.New(ctx, kubebox.Config{Image: "my-image", CPUs: 1, Memory: 2 << 30})
//	if err != nil {
//		return err
//	}
//	defer box.Close()
//	result, err := box.Execute(ctx, "make test")
//
// # The connection
//
// The pod's process 1 is boxd, the server that package sshbox describes. New copies boxd into an
// emptyDir of the pod by one exec, and the pod's container waits for it. The streams of that exec
// then carry the connection: SSH to boxd over a websocket to the API server, or over SPDY if a
// proxy on the way lets no websocket through. If Config.BoxdImage is set, an init container of that
// image brings boxd, and the pod's own container can only read it. New opens no port, and the pod
// needs no network. The keys are made for the one pod. They exist only in the memory of this
// process and of boxd.
//
// # Cuts
//
// If the API server restarts or the network fails, the connection is cut. Sessions and jobs go on,
// and the box connects again by itself, for as long as Config.Linger. Package sshbox says what that
// means for calls under way. If the pod is deleted, evicted or killed, or its node is gone, the box
// is lost: calls return a *sandbox.LostError, whose Cause says which. A box knows its pod by the
// pod's UID, so another pod of the same name is another box.
//
// # What a pod may do
//
// Unless the Config says otherwise, a pod follows the restricted Pod Security Standard. It runs as
// user 1000, has no capabilities and no way to get any, runs under the runtime's seccomp profile,
// and has no service account's token. Its resource requests are equal to its limits. A
// NetworkPolicy of the namespace denies it all traffic in both directions. The first New in the
// namespace makes that policy, and [Cluster.Prune] removes it. A cluster accepts NetworkPolicies
// even if nothing enforces them: [CheckNetwork] finds out.
//
// # Boxes that outlive their program
//
// A box ends with its program, even if that is killed: boxd stops when no owner has connected for
// Config.Linger. [Cluster.Reap] deletes the pod that is left. A box made with Config.Keep goes on
// after Detach, and after its program has ended in any other way, until somebody closes it.
// [Cluster.List] finds boxes, and [Cluster.Attach] takes one over.
//
// # Copies
//
// [KubeBox.Snapshot] keeps the files and sessions of a box in a file of this machine, and
// [Config].Snapshot makes boxes of it: what has changed of the image, and what was removed of it,
// but nothing of volumes. [KubeBox.Fork] makes copies of a box, and [KubeBox.Back] goes back to a
// snapshot. What a copy would lack is an error. The files are read and made in the pods, by boxd
// with the rights of the box's user, so that a snapshot of a hostile box does no more to a pod than
// the box could.
//
// # Whom to trust
//
// The documentation of package sshbox on containers also applies to pods. Without a BoxdImage, a
// program in the box that runs as boxd's own user could replace boxd's file. Later connections then
// lead to that program. They fail, as if they were cut, because the program does not have boxd's
// key. An account that may exec into the namespace's pods controls the box, and one that may read
// pods can read Config.Env.
//
// # Concurrency and lifetimes
//
// All methods may be called from several goroutines. A context governs only its call. Close deletes
// the pod, waits until it is gone, and can be called again.
package kubebox
