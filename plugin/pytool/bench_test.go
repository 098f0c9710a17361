package pytool_test

import (
	"testing"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// BenchmarkCall measures a call, and beside it its floor: the start of Python in the same box.
func BenchmarkCall(b *testing.B) {
	tool := pytool.Tool{Source: "def f(a): return a", Function: "f"}
	for _, c := range []struct {
		name string
		box  func(b *testing.B) boxtest.Box
	}{
		{"LocalBox", func(b *testing.B) boxtest.Box { return boxtest.Local(b, pytool.Plugin()) }},
		{"DockerSSHBox", func(b *testing.B) boxtest.Box {
			return boxtest.Container(b, sshbox.Config{}, pytool.Plugin())
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			box := c.box(b)
			b.Run("PythonPass", func(b *testing.B) {
				for b.Loop() {
					if code, err := box.Run(b.Context(), &sandbox.Cmd{
						Args: []string{"sh", "-c",
							`exec "$SANDSHELL_PYTOOL_PYTHON" -c pass`}}); code != 0 || err != nil {
						b.Fatal(code, err)
					}
				}
			})
			b.Run("Call", func(b *testing.B) {
				for b.Loop() {
					if _, err := tool.Call(b.Context(), box,
						pytool.Call{Args: object{"a": 1}}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
