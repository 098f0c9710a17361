package sshbox

import "testing"

// TestCheckOutward checks that what Outward cannot go with is refused in words.
func TestCheckOutward(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Outward: true, Network: "none"}, ""},
		{Config{Outward: true}, `Config.Outward: on the network "" programs can go around: set ` +
			`Config.Network to "none"`},
		{Config{Outward: true, Network: "none", AllowNewPrivileges: true},
			"Config.Outward: the kernel gives such programs no new privileges: leave out " +
				"Config.AllowNewPrivileges or Config.Outward"},
		{Config{Outward: true, Network: "none", DNS: []string{"192.0.2.1"}},
			"Config.Outward: the box's name server is in the box: leave out Config.DNS"},
	} {
		got := ""
		if err := c.config.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
