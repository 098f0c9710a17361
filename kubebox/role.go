package kubebox

// Role is what an account needs for boxes, in a form that "kubectl apply -n NAMESPACE -f -" takes.
// A RoleBinding gives it to the account. These are the rights, by the resource:
//
//	pods                    create, get, list, watch, patch, delete
//	pods/exec, pods/attach  create, get
//	events                  list, watch
//	networkpolicies         create, get, delete (API group networking.k8s.io)
//
// An account without the rights on networkpolicies can make boxes only if Config.Network is
// NetworkCluster. Without the rights on events, Config.Progress is never called.
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
