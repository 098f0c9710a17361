package localbox_test

import (
	"os/user"
	"testing"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/stretchr/testify/require"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	u, err := user.Current()
	require.NoError(t, err)
	sandboxtest.RunPlace(t, sandboxtest.PlaceTest{
		Place: localbox.Place{Config: localbox.Config{Shell: []string{"sh"}}},
		Refuses: []string{"Image", "Memory", "CPUs", "PIDs", "Disk", "Network", "Mounts",
			"Labels"},
		Samples: map[string]sandboxtest.PlaceSample{
			"User": {Spec: sandbox.Spec{User: u.Username}, Probe: "id -u", Want: u.Uid},
		},
	})
}

func TestPlaceWrong(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]struct {
		place localbox.Place
		spec  sandbox.Spec
	}{
		`localbox: Spec.Dir: "/none": no such file or directory: give an existing directory, or ` +
			`leave Dir out for a temporary one`: {spec: sandbox.Spec{Dir: "/none"}},
		`localbox: Place.Config.Env[0]: "A" has no "=": want NAME=value`: {
			place: localbox.Place{Config: localbox.Config{Env: []string{"A"}}}},
		`localbox: Spec.Network: "none": a LocalBox has this machine's network: leave it out, or ` +
			`use sshbox.Place or kubebox.Place`: {spec: sandbox.Spec{Network: "none"}},
	} {
		_, err := of.place.New(t.Context(), of.spec)
		require.EqualError(t, err, want)
	}
	_, err := localbox.Place{}.New(t.Context(), sandbox.Spec{User: "somebody"})
	require.ErrorContains(t, err, `localbox: Spec.User: "somebody": a LocalBox runs as the user of`)
}
