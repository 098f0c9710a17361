//go:build linux

package shellbox_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A closing host is a chamber that says when it was closed.
type closing struct {
	chamber
	closed *bool
}

func (c closing) Close() error {
	*c.closed = true
	return nil
}

// TestBadOptions: the errors of New name what is wrong, and New has closed the host.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	_, err := shellbox.New(t.Context(), nil, shellbox.Options{})
	require.EqualError(t, err, "shellbox: New: the host is nil")
	for text, o := range map[string]shellbox.Options{
		"shellbox: Options.Env[0]: ": {Env: []string{"A B=1"}},
		"shellbox: Options.Dir: ":    {Dir: "~/x"},
	} {
		closed := false
		_, err := shellbox.New(t.Context(), closing{closed: &closed}, o)
		require.ErrorContains(t, err, text)
		require.True(t, closed)
		if o.Dir != "" {
			require.ErrorIs(t, err, fs.ErrInvalid)
		}
	}
}
