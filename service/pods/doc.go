// Package pods keeps the boxes of package service on a Kubernetes cluster. Each box is a pod that
// package kubebox makes.
//
//	p := pods.New(kubebox.Config{BoxdImage: "my-boxd"})
//	s, err := service.New(service.Config{Place: p, Specs: specs, Secret: secret})
//
// # The cluster is the database
//
// The pods' labels and annotations hold all that the service must know after a restart. So any
// number of processes, on any machines, can serve the same boxes. A box's note is an annotation. A
// patch replaces it only if no other process has replaced it before. An ID belongs to the pod that
// owns its claim, a ConfigMap that is named for the ID and goes with the pod. "kubectl get pods -L
// sandshell-service.id" shows the boxes with their IDs.
//
// The account needs the rules of [Role]: those of [kubebox.Role], and those on ConfigMaps.
//
// # What pods cannot do
//
// Pods cannot be paused or suspended, and no image can be made of them. A [Place] does not copy
// them either, although [kubebox.KubeBox.Fork] can. So Pause, Suspend, Fork and Snapshot of the
// service return errors.ErrUnsupported. A start of a Spec whose Lifecycle pauses boxes, or whose
// Config has what only an engine has, returns a *service.InvalidError that names the field.
//
// A pod that has ended (evicted, out of memory, its node gone) has the status Error and the reason.
// It is not started again, because its files are gone: Delete it, and Start makes another.
// Service.Usage runs a shell in the pod that reads its control group. It does not know what the box
// has written.
//
// If a process is killed in the middle of a start, the other processes of the service remove its
// box: at once if they are on the same machine, else after 10 minutes, and after a day if the box
// was ready in a pool. In a cluster each pod is a machine.
package pods

import "github.com/sandshell/sandshell/kubebox"

// Role is what the service's account needs, in a form that "kubectl apply -n NAMESPACE -f -" takes.
// A RoleBinding gives it to the account. It has the rights of [kubebox.Role], and create, get and
// delete on configmaps.
const Role = kubebox.Role + `- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, get, delete]
`
