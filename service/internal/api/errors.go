package api

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

// An Error is an error that is answered with a status of HTTP.
type Error struct {
	Status int    `json:"-"`
	Code   string `json:"code"`   // for programs: see the document
	Detail string `json:"detail"` // for people
}

func (e *Error) Error() string { return e.Detail }

// Errorf returns an Error.
func Errorf(status int, code, format string, args ...any) *Error {
	return &Error{status, code, fmt.Sprintf(format, args...)}
}

// Invalid says what is wrong with a parameter of a request, or with its body.
func Invalid(name, format string, args ...any) *Error {
	return Errorf(http.StatusUnprocessableEntity, "invalid", "%s: %s", name,
		fmt.Sprintf(format, args...))
}

// kinds are the statuses and codes of errors, in the order in which they are looked for.
var kinds = []struct {
	is     error
	status int
	code   string
}{
	{sandbox.ErrLost, http.StatusServiceUnavailable, "lost"},
	{sandbox.ErrClosed, http.StatusServiceUnavailable, "closed"},
	{sandbox.ErrCut, http.StatusServiceUnavailable, "cut"},
	{sandbox.ErrBusy, http.StatusConflict, "busy"},
	{sandbox.ErrIdle, http.StatusConflict, "idle"},
	{os.ErrProcessDone, http.StatusConflict, "ended"},
	{place.ErrNotFound, http.StatusNotFound, "not_found"},
	{place.ErrConflict, http.StatusConflict, "conflict"},
	{errors.ErrUnsupported, http.StatusNotImplemented, "unsupported"},
}

// ErrorOf returns what an error is answered with.
func ErrorOf(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var lost *sandbox.IncompleteError
	if errors.As(err, &lost) {
		return Errorf(http.StatusConflict, "incomplete", "%v", err)
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			return Errorf(k.status, k.code, "%v", err)
		}
	}
	return Errorf(http.StatusServiceUnavailable, "unavailable", "%v", err)
}
