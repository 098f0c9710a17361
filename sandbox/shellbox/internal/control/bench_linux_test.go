package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkProcesses asks package procfs and the control shell about a session's usual tree: a
// shell and a program that reads the terminal.
func BenchmarkProcesses(b *testing.B) {
	pid := startShell(b, "cat", "SHELLBOX_BENCH=1")
	awaitTree(b, pid, hasNames("cat"))
	ctx := b.Context()
	for _, answers := range []processes{thisMachine{}, startControl(b, 0)} {
		for _, question := range []struct {
			name string
			ask  func() error
		}{
			{"Tree", func() error { _, err := answers.Tree(ctx, pid); return err }},
			{"Alive", func() error { _, err := answers.Alive(ctx, pid); return err }},
			{"Look", func() error { _, err := answers.Look(ctx, pid); return err }},
			{"Marked", func() error {
				_, err := answers.Marked(ctx, "SHELLBOX_BENCH=1")
				return err
			}},
		} {
			b.Run(fmt.Sprintf("%s/%s", question.name, strings.TrimPrefix(fmt.Sprintf("%T", answers),
				"*control.")), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					require.NoError(b, question.ask())
				}
			})
		}
	}
}
