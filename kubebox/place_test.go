package kubebox

import (
	"testing"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/stretchr/testify/require"
)

func TestPlace(t *testing.T) {
	c := cluster(t)
	// The cluster of the tests enforces no NetworkPolicy, so a pod without a network only works.
	sandboxtest.RunPlace(t, sandboxtest.PlaceTest{
		Place:   Place{Config: Config{Cluster: c}},
		Base:    sandbox.Spec{Image: testImage},
		Refuses: []string{"PIDs"},
		Samples: map[string]sandboxtest.PlaceSample{
			"Image":   {Probe: "id -nu user", Want: "user"},
			"Network": {Spec: sandbox.Spec{Network: sandbox.NetworkNone}},
		},
	})
}

// TestPlaceConfig checks that a Spec adds to the place's Config, and replaces what it has too.
func TestPlaceConfig(t *testing.T) {
	t.Parallel()
	p := Place{Config: Config{Image: "one", Env: []string{"A=1"}, Runtime: "gvisor",
		Labels: map[string]string{"a": "1"}, Mounts: []Mount{{Target: "/a"}}}}
	c, err := p.config(sandbox.Spec{Image: "two", User: "9", Dir: "/e", Env: []string{"A=2"},
		Memory: 1, CPUs: 2, Disk: 3, Network: sandbox.NetworkOpen,
		Mounts: []sandbox.Mount{{Type: "secret", Source: "s", Target: "/b", ReadOnly: true}},
		Labels: map[string]string{"b": "3"}})
	require.NoError(t, err)
	require.Equal(t, Config{Image: "two", User: "9", Dir: "/e", Env: []string{"A=1", "A=2"},
		Memory: 1, CPUs: 2, EphemeralStorage: 3, Network: NetworkCluster, Runtime: "gvisor",
		Mounts: []Mount{{Target: "/a"}, {Type: Secret, Source: "s", Target: "/b", ReadOnly: true}},
		Labels: map[string]string{"a": "1", "b": "3"}}, c)
	for want, s := range map[string]sandbox.Spec{
		`kubebox: Spec.User: a cluster cannot look up "joe": give "uid" or "uid:gid" in numbers, ` +
			`or "root"`: {User: "joe"},
		"kubebox: Spec.PIDs: the cluster limits it for all pods of a node alike (podPidsLimit of " +
			"the kubelet): leave it out": {PIDs: 9},
		"kubebox: Spec.Mounts[0].Type: a pod may run on any node, so it has no Bind mounts: use " +
			"Volume, Tmpfs, Secret or ConfigMap": {
			Mounts: []sandbox.Mount{{Source: "/x", Target: "/x"}}},
		`kubebox: Spec.Network: pods have no network "bridge": give NetworkNone or NetworkOpen`: {
			Network: "bridge"},
	} {
		require.EqualError(t, p.Check(s), want)
	}
	require.EqualError(t, Place{Config{Name: "x"}}.Check(sandbox.Spec{}),
		"kubebox: Place.Config.Name: each box needs its own: leave it out")
}
