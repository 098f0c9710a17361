//go:build !linux

package fswatch

import (
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/sandbox"
)

// A Watch exists on Linux only.
type Watch struct{}

var errUnsupported = fmt.Errorf("%w: files are watched on Linux only", errors.ErrUnsupported)

func New(string) (*Watch, error)                    { return nil, errUnsupported }
func (w *Watch) Next() ([]sandbox.FileEvent, error) { return nil, errUnsupported }
func (w *Watch) Close() error                       { return nil }

// A Tree exists on Linux only.
type Tree struct{}

func NewTree(string) (*Tree, error)                { return nil, errUnsupported }
func (w *Tree) Next() ([]sandbox.FileEvent, error) { return nil, errUnsupported }
func (w *Tree) Close() error                       { return nil }
