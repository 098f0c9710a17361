package kubebox

import (
	"github.com/containerd/errdefs"
	"github.com/sandshell/sandshell/internal/kube"
)

// An Error says why a cluster does not give a box, or does not answer a question about one. The
// errors of this package wrap it: errors.As finds it.
type Error struct {
	Reason Reason // why, for programs
	Said   string // what is wrong, in the cluster's words
	Do     string // what to do about it; "" if this package does not know
	Err    error  // the underlying error; nil if there is none
}

// Error returns what is wrong and what to do, without control characters.
func (e *Error) Error() string {
	return (&kube.Error{Said: e.Said, Do: e.Do, Err: e.Err}).Error()
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is errdefs.ErrNotFound of github.com/containerd/errdefs and the Reason
// is NoImage.
func (e *Error) Is(target error) bool {
	return target == errdefs.ErrNotFound && e.Reason == NoImage
}

// newError makes an Error of the one that package kube returns.
func newError(e *kube.Error) error {
	return &Error{Reason: Reason(e.Reason), Said: e.Said, Do: e.Do, Err: e.Err}
}

// A Reason is the kind of an Error.
type Reason string

const (
	// Unschedulable means that no node takes the pod: no node has as much left as the Config asks
	// for, or NodeSelector and Tolerations fit none.
	Unschedulable Reason = "unschedulable"
	// NoImage means that the image does not exist, or cannot be pulled.
	NoImage Reason = "image"
	// Quota means that the namespace's quota is used up.
	Quota Reason = "quota"
	// Forbidden means that the account lacks a right. Role has all that it needs.
	Forbidden Reason = "forbidden"
	// NotAdmitted means that a policy of the namespace, such as Pod Security, refuses the pod.
	NotAdmitted Reason = "not admitted"
	// NotStarted means that the container did not start.
	NotStarted Reason = "not started"
	// Ended means that the pod was deleted, was evicted or ended before it could be used.
	Ended Reason = "ended"
	// Unreachable means that the API server does not answer.
	Unreachable Reason = "unreachable"
)
