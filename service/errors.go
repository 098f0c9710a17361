package service

import (
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/service/place"
)

// The errors that callers tell apart with errors.Is. Failures of the engine are none of these.
var (
	// ErrConflict says that the id is taken by a box of another spec or owner, that the owner has
	// as many boxes as the spec allows, or that the box's state forbids the call. The error says
	// which.
	ErrConflict = place.ErrConflict
	// ErrNotFound says that there is no such box or spec.
	ErrNotFound = place.ErrNotFound
	// ErrInvalid says that an argument is not valid. errors.As with an *InvalidError names it.
	ErrInvalid = errors.New("invalid")
)

// An InvalidError names an argument that is not valid. It is ErrInvalid.
type InvalidError struct {
	// Field is the name of the Go field: "StartOptions.ID", "Query.Limit", "Spec.Config.Memory",
	// …. For the file of a spec, the path of the file comes first.
	Field  string
	Reason string // what is wrong, and what to do
}

// Error returns Field and Reason.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// Is reports whether target is ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// invalidArgument returns the error of a method for an argument.
func invalidArgument(field, format string, args ...any) error {
	return fmt.Errorf("service: %w", invalid(field, format, args...))
}

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
