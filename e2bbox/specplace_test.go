package e2bbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	p := Place{Config: configOf(t, g)}
	sandboxtest.RunPlace(t, sandboxtest.PlaceTest{
		Place:   p,
		Base:    sandbox.Spec{Image: "base"},
		Refuses: []string{"Memory", "CPUs", "PIDs", "Disk", "Mounts"},
		Samples: map[string]sandboxtest.PlaceSample{
			"Image": {Probe: "id -nu user", Want: "user"},
			"User":  {Spec: sandbox.Spec{User: "user"}, Probe: "id -un", Want: "user"},
		},
	})
	require.EqualError(t, p.Check(sandbox.Spec{Network: "bridge"}),
		`e2bbox: Spec.Network: "bridge": E2B's API has no networks by name: give NetworkNone or `+
			"NetworkOpen")
	require.EqualError(t, p.Check(sandbox.Spec{User: "a:b"}),
		`e2bbox: Spec.User: "a:b": give a name without a colon`)
}

// TestConfig checks that a wrong Config is an error that names the field.
func TestConfig(t *testing.T) {
	t.Setenv("E2B_API_KEY", "")
	for want, c := range map[string]Config{
		"Config.APIKey: it is empty": {},
		"Config.Domain:":             {APIKey: "k", Domain: "https://x"},
		"Config.APIURL:":             {APIKey: "k", APIURL: "x"},
		"Config.SandboxURL:":         {APIKey: "k", SandboxURL: "ftp://x"},
		"Config.Timeout:":            {APIKey: "k", Timeout: 1},
		"Config.Env":                 {APIKey: "k", Env: []string{"x"}},
		"Config.Shell":               {APIKey: "k", Shell: []string{""}},
	} {
		_, err := New(t.Context(), c)
		require.ErrorContains(t, err, "e2bbox: "+want)
	}
	_, err := Config{APIKey: "k"}.Attach(t.Context(), "")
	require.ErrorContains(t, err, "the id is empty")
}
