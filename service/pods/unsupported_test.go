package pods

import (
	"errors"
	"testing"

	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// TestUnsupported checks that the error of what no pod can says so, and what to do. Nothing asks
// the cluster, because there is none.
func TestUnsupported(t *testing.T) {
	p := New(kubebox.Config{})
	for what, call := range map[string]func() error{
		"cannot pause pods: Delete ": func() error { return p.Pause(t.Context(), "x/y") },
		"cannot write pods to disk: copy what it has to keep by CopyFrom": func() error {
			_, err := p.Suspend(t.Context(), "x/y")
			return err
		},
		"cannot make images of pods: build an image ": func() error {
			_, err := p.Snapshot(t.Context(), "x/y")
			return err
		},
		"cannot copy pods: Start another box, and copy ": func() error {
			_, err := p.Fork(t.Context(), nil, make([]place.Request, 1), 0)
			return err
		},
	} {
		err := call()
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, what)
	}
}
