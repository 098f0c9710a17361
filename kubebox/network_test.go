package kubebox

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// TestCheckNetwork runs in a cluster that enforces no NetworkPolicies, which CheckNetwork must find
// out.
func TestCheckNetwork(t *testing.T) {
	t.Parallel()
	err := CheckNetwork(t.Context(), Config{Cluster: cluster(t), Image: testImage})
	var open *OpenNetworkError
	require.ErrorAs(t, err, &open)
}

// TestEnforced blocks the packets of pods with iptables, as a network plugin does, and checks the
// result of CheckNetwork.
func TestEnforced(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	podsAreHere(t)
	boxes, err := newProbe(t.Context(), Config{Cluster: c, Image: testImage})
	t.Cleanup(func() { require.NoError(t, boxes.close()) })
	require.NoError(t, err)
	none, one := boxes[0], boxes[1]
	var open *OpenNetworkError
	require.ErrorAs(t, boxes.check(t.Context()), &open)

	in := []string{"-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "-j"}
	out := []string{"-A", "OUTPUT", "-o", "eth0", "-p", "tcp", "--syn", "-j"}
	iptables(t, none, append(in, "REJECT")...)
	require.ErrorAs(t, boxes.check(t.Context()), &open, "it reaches others")
	iptables(t, none, append(out, "REJECT")...)
	require.NoError(t, boxes.check(t.Context()), "refused")
	iptables(t, none, "-F")
	iptables(t, none, append(out, "DROP")...)
	require.ErrorAs(t, boxes.check(t.Context()), &open, "others reach it")
	iptables(t, none, append(in, "DROP")...)
	require.NoError(t, boxes.check(t.Context()), "dropped")

	iptables(t, one, append(out, "REJECT")...)
	err = boxes.check(t.Context())
	require.ErrorContains(t, err, one.PodName()+" did not reach")
	require.NotErrorAs(t, err, &open)
	require.NoError(t, boxes[2].Close())
	err = boxes.check(t.Context())
	require.ErrorIs(t, err, sandbox.ErrClosed)
	require.NotErrorAs(t, err, &open)
}

// iptables changes the rules of a pod's network.
func iptables(t *testing.T, b *KubeBox, args ...string) {
	t.Helper()
	enter := []string{"--net=" + filepath.Join(boxd(t, b), "ns", "net"), "iptables", "--wait"}
	out, err := exec.Command("nsenter", append(enter, args...)...).CombinedOutput()
	require.NoErrorf(t, err, "%s", out)
}
