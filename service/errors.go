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
	// Field is the name of the Go field: "ID", "Limit", "Env", …. For a file of a spec, it begins
	// with the name of the file.
	Field  string
	Reason string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// Is reports whether target is ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
