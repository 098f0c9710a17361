package kubebox

import "github.com/sandshell/sandshell/internal/kube"

// An Error says why a cluster does not give a box, or does not tell of one: errors.As finds it.
type Error = kube.Error

// A Reason is why.
type Reason = kube.Reason

const (
	// no node takes the pod: too little is free, or NodeSelector and Tolerations fit none
	Unschedulable = kube.Unschedulable
	NoImage       = kube.NoImage   // the image cannot be pulled, or is not there
	Quota         = kube.Quota     // the namespace's quota is used up
	Forbidden     = kube.Forbidden // the account may not do it: Role has what it needs
	// a policy of the namespace, as Pod Security, does not let such a pod in
	NotAdmitted = kube.NotAdmitted
	NotStarted  = kube.NotStarted // the container did not start
	// the pod was deleted, evicted or ended before it could be used
	Ended       = kube.Ended
	Unreachable = kube.Unreachable // the API server does not answer
)

// Role is what an account needs for boxes, as "kubectl apply -n NAMESPACE -f -" takes it; a
// RoleBinding gives it to the account. Without networkpolicies, set Config.Network to
// NetworkCluster, and without events, no Progress.
const Role = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: sandshell
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [create, get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [pods/exec, pods/attach]
  verbs: [create, get]
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create, get, delete]
`
