package dialect

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIncomplete(t *testing.T) {
	for _, c := range []struct {
		want bool
		text string
	}{
		{true, "bash: unexpected EOF while looking for matching `''\n"},
		{true, "bash: eval: line 3: syntax error: unexpected end of file\n"},
		// A script says so, not the session's shell.
		{false, "x\nbash: line 5: warning: here-document at line 1 " +
			"delimited by end-of-file (wanted `E')\n"},
		{true, "bash: warning: here-document at line 54 " +
			"delimited by end-of-file (wanted `E')\nnext\n"},
		{true, "dash: 3: eval: Syntax error: Unterminated quoted string\n"},
		{true, "dash: 3: eval: Syntax error: end of file unexpected (expecting \"do\")\n"},
		{true, "ash: eval: syntax error: unexpected end of file (expecting \"do\")\n"},
		{true, "/bin/sh: 1: eval: Syntax error: Unterminated quoted string\n"},
		{false, "bash: eval: line 3: syntax error near unexpected token `)'\n"},
		{false, "the compiler says: unexpected end of file\n"},
	} {
		require.Equal(t, c.want, Incomplete(c.text), c.text)
	}
}
