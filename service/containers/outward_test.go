package containers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCanOutward checks which machines' containers have sshbox.Config.Outward.
func TestCanOutward(t *testing.T) {
	for _, c := range []struct {
		runtime, path, kernel, architecture string
		can                                 bool
	}{
		{"runc", "runc", "5.5.0", "x86_64", true},
		{"runc", "runc", "6.8.0-45-generic", "aarch64", true},
		{"runc", "runc", "5.4.0-1-generic", "x86_64", false},
		{"runc", "runc", "4.18.0", "x86_64", false},
		{"runc", "runc", "6.1.0", "armv7l", false},
		{"runsc", "/usr/bin/runsc", "6.1.0", "x86_64", false},
		{"sandboxed", "/usr/local/bin/runsc", "6.1.0", "x86_64", false},
		{"io.containerd.runsc.v1", "", "6.1.0", "x86_64", false},
		{"kata", "", "", "amd64", true},
	} {
		require.Equal(t, c.can, canOutward(c.runtime, c.path, c.kernel, c.architecture), c)
	}
}
