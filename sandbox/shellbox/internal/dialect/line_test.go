package dialect

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBlank(t *testing.T) {
	for command, want := range map[string]bool{
		"": true, " \n\t\n": true, "# nothing": true, "\n  # nothing\n": true,
		"x": false, "# a\nx": false, ":": false,
	} {
		require.Equal(t, want, blank(command), "%q", command)
	}
}

func TestInteractive(t *testing.T) {
	for _, c := range []struct {
		want bool
		args []string
	}{
		{true, []string{"bash"}}, {true, []string{"/bin/bash", "-l"}}, {true, []string{"-bash"}},
		{true, []string{"bash", "--rcfile", "/etc/rc", "-i"}},
		{true, []string{"busybox", "ash"}}, {true, []string{"zsh", "-o", "vi"}},
		{true, []string{"dash", "+m"}},
		{false, []string{"bash", "-c", "read x"}}, {false, []string{"bash", "-lc", "read x"}},
		{false, []string{"bash", "script"}},
		{false, []string{"busybox", "cat"}}, {false, []string{"python3"}}, {false, nil},
	} {
		require.Equal(t, c.want, Interactive(c.args), "%q", c.args)
	}
}
