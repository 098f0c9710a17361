package kube

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/sandshell/sandshell/internal/printable"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A Reason is the kind of an Error. Package kubebox has the same.
type Reason string

const (
	Unschedulable Reason = "unschedulable" // no node takes the pod
	NoImage       Reason = "image"         // the image does not exist, or cannot be pulled
	Quota         Reason = "quota"         // the namespace's quota is used up
	Forbidden     Reason = "forbidden"     // the account lacks a right
	NotAdmitted   Reason = "not admitted"  // a policy of the namespace refuses the pod
	NotStarted    Reason = "not started"   // the container did not start
	Ended         Reason = "ended"         // the pod ended before it could be used
	Unreachable   Reason = "unreachable"   // the API server does not answer
)

// An Error says why a cluster does not give a box, or does not answer a question about one. A
// Cluster returns what Endpoint.NewError makes of it.
type Error struct {
	Reason Reason // why, for programs
	Said   string // what is wrong, in the cluster's words
	Do     string // what to do about it; "" if that is not known
	Err    error  // the underlying error; nil if there is none
}

// Error returns what is wrong and what to do, without control characters.
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

// public returns the error that callers of the public packages see.
func (c *Cluster) public(e *Error) error {
	if c.NewError == nil {
		return e
	}
	return c.NewError(e)
}

// Explain returns an error that says what the API server's answer err to a request means: an Error
// if it knows, else err with the request before it.
func (c *Cluster) Explain(err error, verb, resource, name string) error {
	if verb == "exec" || verb == "attach" {
		verb, resource = "create", "pods/"+verb
	}
	if e := c.known(err, verb, resource, name); e != nil {
		return c.public(e)
	}
	return fmt.Errorf("%s %s %s: %w", verb, resource, name, err)
}

// known returns the Error that an answer of the API server means, or nil if it does not know the
// answer.
func (c *Cluster) known(err error, verb, resource, name string) *Error {
	text := err.Error()
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		return &Error{Reason: Quota, Said: text, Do: "close boxes, ask for less, or raise the " +
			"namespace's ResourceQuota", Err: err}
	case apierrors.IsForbidden(err) && strings.Contains(text, "must specify"):
		// The quota limits something that the pod does not ask for.
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
	return nil
}
