package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

func TestLossKind(t *testing.T) {
	for kind, want := range map[sandbox.LossKind]string{
		0:                                      "none",
		sandbox.Functions:                      "functions",
		sandbox.Programs | sandbox.Descriptors: "programs|descriptors",
		sandbox.AnyLoss: "programs|descriptors|functions|shell state|mounts|" +
			"special files",
		sandbox.ShellState | 1<<20: "shell state|0x100000",
	} {
		require.Equal(t, want, kind.String())
	}
	o := sandbox.NewSessionOptions(sandbox.Accept(sandbox.Programs), sandbox.Accept(
		sandbox.Functions))
	require.Equal(t, sandbox.Programs|sandbox.Functions, o.Accept)
}

func TestIncompleteError(t *testing.T) {
	e := &sandbox.IncompleteError{Lost: []sandbox.Loss{
		{Kind: sandbox.Programs, Session: "main", PID: 39, What: "sleep"},
		{Kind: sandbox.Descriptors, Session: "main", PID: 34, What: "7 → /srv/f"},
		{Kind: sandbox.Functions, Session: "main", PID: 34, What: "f"},
		{Kind: sandbox.ShellState, Session: "main", PID: 34, What: "variable x"},
	}}
	require.EqualError(t, e, "would be lost: program 39 (sleep), descriptor 7 → /srv/f, "+
		"function f, variable x "+
		"(Accept permits to lose programs|descriptors|functions|shell state)")
	for range 10 {
		e.Lost = append(e.Lost, e.Lost[2])
	}
	require.ErrorContains(t, e, "function f, and 4 more (Accept")
}
