// Package kubebox has sandboxes that are pods of a Kubernetes cluster: a [KubeBox] is a
// sandbox.Sandbox. It needs an account in a namespace of a cluster ([Role] is what it has to be
// allowed), and nothing of the cluster: no controller, no CRD, no chart.
//
//	box, err := kubebox.New(ctx, kubebox.Config{Image: "my-image", CPUs: 1, Memory: 2 << 30})
//	if err != nil {
//		return err
//	}
//	defer box.Close()
//	result, err := box.Execute(ctx, "make test")
//
// # How it is reached
//
// The pod's process 1 is boxd, the server that package sshbox describes. It is brought by one exec
// into the pod, whose container waits for it in an emptyDir, and that exec's streams are the
// connection then: SSH to boxd, over a websocket to the API server (over SPDY where something on
// the way lets no websocket through). With Config.BoxdImage a container of that image brings it
// instead, and the pod's own container can only read it. No port is opened, and the pod needs no
// network. Keys are made for the one pod and are nowhere but in the memory of this process and of
// boxd.
//
// # Cuts
//
// When the connection is cut, because the API server restarts or the network fails, sessions and
// jobs run on, and the box connects again by itself, for as long as Config.Linger: nothing is lost
// and nothing comes twice, as package sshbox says. A pod that was deleted, evicted or killed, and
// one whose node is gone, is a lost box: calls return a *sandbox.LostError, and its Cause says
// which. A pod is told from any other by its UID.
//
// # What the cluster is asked for
//
// A pod is of the restricted Pod Security Standard unless the Config says otherwise: it runs as
// user 1000, without capabilities and without a way to get any, under the runtime's seccomp
// profile, and has no service account's token. Requests are equal to limits. By a NetworkPolicy of
// the namespace, which the first New makes and [Cluster.Prune] removes, nothing reaches it and it
// reaches nothing. A cluster takes NetworkPolicies whether somebody enforces them or not:
// [CheckNetwork] finds out.
//
// # Boxes that outlive their program
//
// A box ends with its program, even one that is killed: boxd stops when nobody has come for
// Config.Linger. What is left, a pod that has ended, [Cluster.Reap] deletes. A box made with
// Config.Keep stays, after Detach or whatever end its program had, until somebody closes it.
// [Cluster.List] finds boxes, [Cluster.Attach] takes one over.
//
// # Whom to trust
//
// As package sshbox says of containers. What runs in the box as boxd's own user could put another
// program in the place of boxd's file, unless there is a BoxdImage. Later connections lead to that
// program then, and are cuts: it has no key. Whoever may exec into the namespace's pods, or read
// its Config.Env, is the box's master.
//
// # Concurrency and lifetimes
//
// All methods may be called from several goroutines. A context governs its call only. Close deletes
// the pod, waits until it is gone, and can be called again.
package kubebox
