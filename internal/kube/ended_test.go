package kube

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/hostiletest"
)

// TestHostileStatus reads error streams of an exec. The runtime of a pod puts a program's own text
// there.
func TestHostileStatus(t *testing.T) {
	for _, c := range []struct{ name, says, want string }{
		{"Endless", "A", "64 KiB"}, {"Objects", `{"a":`, "64 KiB"}, {"Lines", "\n", "64 KiB"},
	} {
		hostiletest.Case{Name: c.name, Says: c.want, Call: func(context.Context, *testing.T) error {
			return execEnd(hostiletest.Endless(c.says))
		}}.Run(t)
	}
}

func FuzzStatus(f *testing.F) {
	for _, seed := range []string{`{"status":"Success"}`,
		`{"status":"Failure","message":"m\u001b[0m","details":{"causes":[null,{}]}}`, "null", "[]",
		"text\x1b", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, says string) {
		err := execEnd(strings.NewReader(says))
		require.Error(t, err)
		if err != io.EOF {
			require.NotContains(t, err.Error(), "\x1b")
		}
	})
}
