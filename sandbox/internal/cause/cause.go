// Package cause tells why a call of a sandbox has failed, without what the call was about. An error
// of Execute quotes the command, which may hold secrets.
package cause

import (
	"context"
	"errors"

	"github.com/sandshell/sandshell/sandbox"
)

// Of returns err without the words of the call that has failed. It is a *sandbox.LostError, one of
// the errors of package sandbox or context, or what the call's error wraps. If err joins several
// errors, so does the result.
func Of(err error) error {
	if lost := new(sandbox.LostError); errors.As(err, &lost) {
		return lost
	}
	for _, known := range []error{sandbox.ErrTimeout, sandbox.ErrQuestion, sandbox.ErrClosed,
		sandbox.ErrBusy, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	switch err := err.(type) {
	case interface{ Unwrap() []error }:
		var causes []error
		for _, one := range err.Unwrap() {
			causes = append(causes, Of(one))
		}
		return errors.Join(causes...)
	case interface{ Unwrap() error }:
		if inner := err.Unwrap(); inner != nil {
			return inner
		}
	}
	return err
}
