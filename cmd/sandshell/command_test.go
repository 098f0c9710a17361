package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVerbs shows that the package comment, which is the command's page on pkg.go.dev, lists the
// verbs of the help, in their order and with the same words.
func TestVerbs(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	verbs := "// The verbs are:\n//\n"
	for _, c := range commands() {
		verbs += fmt.Sprintf("//\t%-10s  %s\n", c.Name(), c.does)
	}
	require.Contains(t, string(source), verbs+"//\n// ")
}
