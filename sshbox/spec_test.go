package sshbox

import (
	"strings"
	"testing"
)

// TestBoxdFor shows for which platforms there is a boxd, and that the error names them.
func TestBoxdFor(t *testing.T) {
	for _, platform := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"},
		{"linux", "aarch64"}, {"", "amd64"}} {
		if b, err := boxdFor("x", platform[0], platform[1]); err != nil || b == nil {
			t.Errorf("%v: %v", platform, err)
		}
	}
	for _, platform := range [][2]string{{"linux", "riscv64"}, {"windows", "amd64"},
		{"linux", "arm"}, {"linux", ""}} {
		_, err := boxdFor("registry/x:1", platform[0], platform[1])
		if err == nil {
			t.Fatalf("%v: there is a boxd for this platform", platform)
		}
		for _, want := range []string{`"registry/x:1"`, platform[0] + "/" + platform[1],
			"linux/amd64", "linux/arm64"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %q", want, err)
			}
		}
	}
}
