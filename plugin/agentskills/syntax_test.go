package agentskills_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/stretchr/testify/require"
)

// If there is a checker, an edit that breaks the syntax is refused, and shown. An edit of a file
// that has an error already is not refused.
func TestSyntax(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "checked")
		for _, c := range []struct{ program, file, good, bad, says string }{
			{"python3", "a.py", "def f():\n    return 1", "def f():\n  x = 1\n    return 1",
				"IndentationError: unexpected indent"},
			{"python3", "b.pyi", "x: int", "x: int = (", "SyntaxError: '(' was never closed"},
			{"python3", "script", "#!/usr/bin/env python3\nx = 1",
				"#!/usr/bin/env python3\nx = = 1", "SyntaxError: invalid syntax"},
			{"python3", "a.json", `{"a": [1]}`, `{"a": [1}`,
				"Expecting ',' delimiter: line 1 column 9"},
			{"python3", "a.ipynb", `{}`, `{`, "Expecting property name"},
			{"sh", "a.sh", "if :; then\n\techo\nfi", "if :; then\n\techo", "a.sh: "},
			{"sh", "script", "#!/bin/sh\necho ${x}", "#!/bin/sh\necho ${x", "script: "},
			{"bash", "a.bash", "a=(1 2)", "a=(1 2", "a.bash: line "},
			{"bash", "a.sh", "#!/usr/bin/env bash\na=(1 2)", "#!/usr/bin/env bash\na=(1 2",
				"a.sh: line "},
			{"gofmt", "a.go", "package a\n\nfunc f() {}", "package a\n\nfunc f() {", "a.go:3:"},
			{"node", "a.js", "function f() { return 1 }", "function f() { return 1", "SyntaxError"},
			{"node", "b.js", "import fs from 'fs'\nexport const x = 1",
				"import fs from 'fs'\nexport const x =", "SyntaxError"},
			{"node", "a.mjs", "await 1", "await (", "SyntaxError"},
		} {
			if _, status := try(t, b, "command -v "+c.program); status != 0 {
				do(t, b, "create "+c.file+" <<'END'\n"+c.good+"\nEND")
				require.Contains(t, do(t, b, fmt.Sprintf("edit %d:%[1]d <<'END'\n((((\nEND",
					1+strings.Count(c.good, "\n"))), "Replaced 1 line", "without a checker")
				do(t, b, "rm "+c.file)
				continue
			}
			require.NotContains(t, do(t, b, "create "+c.file+" <<'END'\n"+c.good+"\nEND"), "syntax")
			n := 1 + strings.Count(c.good, "\n")
			edit := func(text string) string {
				return "edit 1:" + string(rune('0'+n)) + " <<'END'\n" + text + "\nEND"
			}
			output, status := try(t, b, edit(c.bad))
			require.Equalf(t, 1, status, "%s: %s", c.file, output)
			require.Contains(t, output, "Refused: the edit would break the syntax. ")
			require.Contains(t, output, "/"+c.file+" is unchanged.\n")
			require.Contains(t, output, c.says)
			require.NotContains(t, output, "sessions", "a path of ours")
			bad, good, ok := strings.Cut(output, "With the edit it would have been:\n1:")
			require.True(t, ok, bad)
			bad, good, ok = strings.Cut(good, "It is:\n1:")
			require.True(t, ok, good)
			require.Contains(t, bad, strings.Split(c.bad, "\n")[0])
			require.Contains(t, good, strings.Split(c.good, "\n")[0])
			require.Equal(t, c.good+"\n", do(t, b, "cat "+c.file))

			require.Contains(t, do(t, b, edit(c.good+"\n")), "Replaced")
			n = 1
			do(t, b, "printf '%s\\n' '"+strings.ReplaceAll(strings.ReplaceAll(c.bad, "'", "\""),
				"\n", "' '")+"' >"+c.file)
			require.Contains(t, do(t, b, "str_replace '"+strings.Fields(c.bad)[0]+"' '"+
				strings.Fields(c.bad)[0]+" '"),
				"Note that there is a syntax error, as there was before:\n  ")
			do(t, b, "rm "+c.file)
		}
		require.Empty(t, do(t, b, "ls -A"), "no .pyc, and nothing else")
	})
}
