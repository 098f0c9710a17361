package sshbox

import (
	"testing"

	"github.com/sandshell/sandshell/sandbox"
)

// TestNoNetwork shows that a box of network "none" has no interface but the loopback, and that no
// user can make another.
func TestNoNetwork(t *testing.T) {
	t.Parallel()
	probe := `grep -c -v -e '|' -e lo: /proc/net/dev; tail -n +2 /proc/net/route | grep -c .; ip link add way type dummy 2>/dev/null || unshare -n true 2>/dev/null || echo none made`
	box := newBox(t, Config{Image: testImage, Network: "none"})
	for _, user := range []string{"root", "user", "nobody"} {
		s, err := box.Open(t.Context(), sandbox.User(user), sandbox.Dir("/"))
		noError(t, err)
		expect(t, s, probe, 0, "0\n0\nnone made\n")
		noError(t, s.Close())
	}
}
