// Package pods has the boxes of package service on a Kubernetes cluster: each is a pod, as package
// kubebox makes them.
//
//	s, err := service.New(service.Config{Place: pods.New(kubebox.Config{BoxdImage: "my-boxd"}), Specs: specs, Secret: secret})
//
// # The cluster is the database
//
// What the service has to know after its own restart lies in the pods' labels and annotations, so
// any number of processes, on any machines, can serve the same boxes. A box's note is an
// annotation, which a patch replaces only if it is still the one that the note was made of. An ID
// belongs to the pod that owns its claim, a ConfigMap that is named for the ID; it goes with the
// pod. "kubectl get pods -L sandshell-service.id" shows the boxes by their IDs.
//
// The account needs what [Role] says: what kubebox.Role does, and ConfigMaps.
//
// # What pods cannot
//
// A pod cannot be paused, suspended or made an image of: Service.Pause, Suspend and Snapshot are
// errors.ErrUnsupported, and a Spec whose Lifecycle pauses boxes is a *service.InvalidError, as is
// one whose Config has what only an engine has. The error names the field. A pod that has ended
// (evicted, out of memory, its node gone) is an Error with the reason, and not started again: its
// files are gone; Delete it, and Start makes another. Service.Usage reads the pod's control group
// by a shell in it, and does not know what the box has written.
//
// A box whose maker was killed in the middle of a start is removed by other processes of the
// service when that maker was on their machine, or, as for one whose maker was on another, after 10
// minutes; a box that was ready in a pool there after a day. (In a cluster each pod is a machine.)
package pods

import "github.com/sandshell/sandshell/kubebox"

// Role is what the service's account needs: see kubebox.Role.
const Role = kubebox.Role + `- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, get, delete]
`
