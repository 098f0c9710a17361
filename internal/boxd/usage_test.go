//go:build linux

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The usage text and the package's documentation name every command and its arguments.
func TestUsageHasAllCommands(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	doc, _, _ := strings.Cut(string(source), "\npackage main\n")
	text := usage()
	for _, c := range commands {
		require.NotEmpty(t, c.help, c.name)
		require.Contains(t, text, "  "+strings.TrimSpace("boxd "+c.name+" "+c.args)+"\n")
		require.Contains(t, text, "        "+c.help+"\n")
		require.Contains(t, doc, "//	boxd "+c.name+" ")
	}
	for _, name := range []string{"serve", "join", "install", "check", "start", "list", "reap",
		"sftp", "files", "watch"} {
		require.Contains(t, text, "boxd "+name)
	}
}

// If the arguments fit no command, boxd prints the usage text.
func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{
		{}, {"other"}, {"serve"}, {"join"}, {"join", "a", "b"}, {"install", "dir"}, {"check"},
		{"start", "sum"}, {"list"}, {"reap", "a", "b"}, {"watch"},
	} {
		require.ErrorIs(t, dispatch(args), errUsage, "%q", args)
	}
}
