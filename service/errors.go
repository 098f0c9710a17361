package service

import (
	"errors"
	"fmt"
)

// The errors that callers tell apart with errors.Is. An engine's failure is none of them.
var (
	// ErrConflict: the id is taken by a box of another spec or owner, the owner has as many boxes
	// as the spec allows, or the box's state forbids what was asked for. The error says which.
	ErrConflict = errors.New("conflict")
	// ErrNotFound: there is no such box or spec.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: something that was given cannot be. errors.As with an *InvalidError names it.
	ErrInvalid = errors.New("invalid")
	// ErrKey: the session key belongs to no running box.
	ErrKey = errors.New("wrong session key")
)

// An InvalidError names what was given and cannot be. It is ErrInvalid.
type InvalidError struct {
	// as the Go field is named: "ID", "Limit", "Env", …; in a file of a spec with the file before
	// it
	Field  string
	Reason string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// Is reports whether target is ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
