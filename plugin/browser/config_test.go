package browser

import (
	"testing"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func TestConfig(t *testing.T) {
	for message, c := range map[string]Config{
		"Config.Width: -1 is negative: give pixels, or 0 for the default":  {Width: -1},
		"Config.Height: -1 is negative: give pixels, or 0 for the default": {Height: -1},
		`Config.DownloadDir: "here" is not absolute: give a path in the box that begins with a ` +
			"slash": {DownloadDir: "here"},
		`Config.Env[0]: "A" has no "=": want NAME=value`: {Env: []string{"A"}},
	} {
		_, err := Open(t.Context(), struct{ sandbox.Sandbox }{}, c)
		require.EqualError(t, err, "browser: "+message)
		require.Equal(t, err, c.Check())
	}
	require.NoError(t, Config{}.Check())
	_, err := Open(t.Context(), nil, Config{})
	require.EqualError(t, err, "browser: Open: the box is nil: give the sandbox that has Chromium")
}
