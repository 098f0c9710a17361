//go:build !linux

package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/sandbox"
)

var errUnsupported = fmt.Errorf("%w: a directory has a history on Linux only",
	errors.ErrUnsupported)

func resolve(string) (string, error) { return "", errUnsupported }

func usableBase(string) error { return errUnsupported }

func storeName(string) string { return "" }

// Save implements sandbox.History.
func (h *History) Save(context.Context) (sandbox.Point, error) {
	return sandbox.Point{}, errUnsupported
}

// Points implements sandbox.History.
func (h *History) Points(context.Context) ([]sandbox.Point, error) { return nil, errUnsupported }

// Forget implements sandbox.History.
func (h *History) Forget(context.Context, ...sandbox.Point) error { return errUnsupported }

// Changes implements sandbox.History.
func (h *History) Changes(context.Context, sandbox.Point) ([]sandbox.Change, error) {
	return nil, errUnsupported
}

// Back implements sandbox.History.
func (h *History) Back(context.Context, sandbox.Point) (sandbox.Point, error) {
	return sandbox.Point{}, errUnsupported
}
