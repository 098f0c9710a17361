package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

func TestText(t *testing.T) {
	for want, r := range map[string]sandbox.Result{
		"":                     {State: sandbox.Exited},
		"a\n":                  {State: sandbox.Exited, Output: "a\n"},
		"a\n[exit status 3]\n": {State: sandbox.Exited, Output: "a", ExitCode: 3},
		"[exit status 130]\n":  {State: sandbox.Exited, ExitCode: 130},
		"name? \n[waiting for a line of input]\n": {State: sandbox.Waiting, ExitCode: -1,
			Awaits: sandbox.Line, Output: "name? "},
		"[may be waiting for a line of input, or still working]\n": {State: sandbox.Waiting,
			ExitCode: -1, Awaits: sandbox.Line, MayGoOn: true},
		"head\n[… 1,234,567 bytes omitted …]\ntail\n": {State: sandbox.Exited,
			Output: "headtail\n", Omitted: 1234567, OmittedAt: 4},
		"[the shell ended; a new one started in /tmp]\n": {State: sandbox.Exited, Restarted: true,
			Cwd: "/tmp"},
		"[1 byte of input was not read, and dropped]\n":    {State: sandbox.Exited, Unread: 1},
		"[12 bytes of input were not read, and dropped]\n": {State: sandbox.Exited, Unread: 12},
	} {
		require.Equal(t, want, r.Text())
	}
}
