package pods

import (
	"testing"

	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// TestPauseAtEnd checks that a box which is to be paused at its end is refused before its pod is
// made, by the name of the option.
func TestPauseAtEnd(t *testing.T) {
	p := New(kubebox.Config{})
	_, _, err := p.Create(t.Context(), place.Request{Spec: "s", PauseAtEnd: true})
	for _, err := range []error{err, p.Note(t.Context(), "x/y", place.Note{PauseAtEnd: true})} {
		var invalid *service.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "StartOptions.PauseAtEnd", invalid.Field)
		require.ErrorContains(t, err, "StartOptions.PauseAtEnd: pods cannot be paused: leave it "+
			"out, and the box is removed at its end")
	}
}
