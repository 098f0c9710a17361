package sshlogin

import (
	"bufio"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/hostiletest"
)

// TestHostileList checks that a list that never ends is an error, and bounded.
func TestHostileList(t *testing.T) {
	for _, c := range []struct{ name, says, want string }{
		{"Endless", "A", "64 KiB"}, {"Boxes", "{}\n", "4 MiB"},
		{"Nonsense", "\n", "boxd list says"},
	} {
		hostiletest.Case{Name: c.name, Says: c.want, Call: func(context.Context, *testing.T) error {
			_, err := readList("{}", bufio.NewReader(hostiletest.Endless(c.says)))
			return err
		}}.Run(t)
	}
}

func FuzzList(f *testing.F) {
	f.Add("end", "")
	f.Add(`{"ID":"a","Created":"2026-01-02T03:04:05Z","Linger":1}`, "{}\nend\n")
	f.Add("{}", "{}\nen")
	f.Add(`{"Linger":1e400}`, "end")
	f.Fuzz(func(t *testing.T, first, rest string) {
		boxes, err := readList(first, bufio.NewReader(strings.NewReader(rest)))
		if err == nil {
			require.LessOrEqual(t, len(boxes), strings.Count(rest, "\n")+1)
		}
	})
}
