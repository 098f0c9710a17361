package kube

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/sandshell/sandshell/internal/printable"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A Reason is why a cluster does not give a box.
type Reason string

const (
	Unschedulable Reason = "unschedulable" // no node takes the pod
	NoImage       Reason = "image"         // the image cannot be pulled, or is not there
	Quota         Reason = "quota"         // the namespace's quota is used up
	Forbidden     Reason = "forbidden"     // the account may not do it
	// a policy of the namespace, as Pod Security, does not let such a pod in
	NotAdmitted Reason = "not admitted"
	NotStarted  Reason = "not started" // the container did not start
	// the pod was deleted, evicted or ended before it could be used
	Ended       Reason = "ended"
	Unreachable Reason = "unreachable" // the API server does not answer
)

// An Error says why a cluster does not give a box, or does not tell of one.
type Error struct {
	Reason Reason // for programs
	Said   string // what is the matter, in the cluster's words
	Do     string // what to do about it; "" if nothing is known
	Err    error  // the underlying error, if there is one
}

func (e *Error) Error() string {
	s := printable.Text(e.Said)
	if e.Do != "" {
		s += ": " + e.Do
	}
	if e.Err != nil && e.Said == "" {
		s = e.Err.Error() + s
	}
	return s
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Explain makes an *Error of what the API server has answered to a verb, where there is something
// to say.
func (c *Cluster) Explain(err error, verb, resource, name string) error {
	return c.explain(err, verb, resource, name)
}

// explain makes an *Error of what the API server has answered to a verb, where there is something
// to say.
func (c *Cluster) explain(err error, verb, resource, name string) error {
	text := err.Error()
	if verb == "exec" || verb == "attach" {
		verb, resource = "create", "pods/"+verb
	}
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		return &Error{Reason: Quota, Said: text, Do: "close boxes, ask for less, or raise the " +
			"namespace's ResourceQuota", Err: err}
	case apierrors.IsForbidden(err) && strings.Contains(text, "must specify"):
		// a quota on what the pod does not say
		return &Error{Reason: Quota, Said: text, Do: "set Config.CPUs, Memory and " +
			"EphemeralStorage as the namespace's ResourceQuota asks", Err: err}
	case apierrors.IsForbidden(err) && strings.Contains(text, "violates PodSecurity"):
		return &Error{Reason: NotAdmitted, Said: text,
			Do: "leave Config.User, CapAdd and AllowNewPrivileges as they are by default, or " +
				"label the namespace for another level", Err: err}
	case apierrors.IsForbidden(err) && !strings.Contains(text, " cannot "): // LimitRange, webhooks
		return &Error{Reason: NotAdmitted, Said: text, Err: err}
	case apierrors.IsForbidden(err):
		return &Error{Reason: Forbidden, Said: fmt.Sprintf(
			"the account may not %s %s in namespace %q: %s", verb, resource, c.Namespace, text),
			Do: "give it the Role that kubebox.Role has", Err: err}
	case apierrors.IsUnauthorized(err):
		return &Error{Reason: Forbidden, Said: "the cluster does not know the account: " + text,
			Do: "log in again, or correct the kubeconfig", Err: err}
	case apierrors.IsAlreadyExists(err):
		return &Error{Reason: NotAdmitted, Said: text,
			Do: fmt.Sprintf("give another Config.Name, or remove the other pod (kubectl delete "+
				"pod %s)", name), Err: err}
	case apierrors.IsNotFound(err) && strings.Contains(text, "namespaces"):
		return &Error{Reason: NotAdmitted, Said: text,
			Do: "make the namespace, or correct Config.Namespace", Err: err}
	}
	var unreached *url.Error
	if errors.As(err, &unreached) {
		return &Error{Reason: Unreachable, Said: fmt.Sprintf(
			"the cluster's API server %s does not answer: %v", c.Host(), err), Err: err}
	}
	return fmt.Errorf("%s %s %s: %w", verb, resource, name, err)
}
