package e2b

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// A Code says what kind of error a call has returned.
type Code string

// The codes of the Connect protocol that this package writes.
const (
	Canceled           Code = "canceled"
	InvalidArgument    Code = "invalid_argument"
	DeadlineExceeded   Code = "deadline_exceeded"
	NotFound           Code = "not_found"
	AlreadyExists      Code = "already_exists"
	PermissionDenied   Code = "permission_denied"
	ResourceExhausted  Code = "resource_exhausted"
	FailedPrecondition Code = "failed_precondition"
	Unimplemented      Code = "unimplemented"
	Internal           Code = "internal"
	Unavailable        Code = "unavailable"
	Unauthenticated    Code = "unauthenticated"
	unknown            Code = "unknown"
)

// statuses are those of HTTP with which calls without streams are answered.
var statuses = map[Code]int{
	Canceled: 499, InvalidArgument: http.StatusBadRequest,
	DeadlineExceeded: http.StatusGatewayTimeout, NotFound: http.StatusNotFound,
	AlreadyExists: http.StatusConflict, PermissionDenied: http.StatusForbidden,
	ResourceExhausted:  http.StatusTooManyRequests,
	FailedPrecondition: http.StatusBadRequest, Unimplemented: http.StatusNotImplemented,
	Unavailable:     http.StatusServiceUnavailable,
	Unauthenticated: http.StatusUnauthorized,
}

// An Error is the error of a call of the data plane.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Errorf returns an Error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// Status returns the status of HTTP that goes with the code.
func (e *Error) Status() int {
	if status, ok := statuses[e.Code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// ErrorOf returns err as an Error.
func ErrorOf(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return Errorf(DeadlineExceeded, "%v", err)
	case errors.Is(err, context.Canceled):
		return Errorf(Canceled, "%v", err)
	case errors.Is(err, errors.ErrUnsupported):
		return Errorf(Unimplemented, "%v", err)
	}
	return Errorf(Internal, "%v", err)
}
