package agentskills_test

import (
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/stretchr/testify/require"
)

// This is the work of a model: it looks for a bug, its first edit is refused for its indentation,
// the second one corrects the bug, and the program shows that.
func TestTask(t *testing.T) {
	t.Parallel()
	boxtest.Each(t, func(t *testing.T, b boxtest.Box) {
		enter(t, b, "task")
		_, status := call(t, b, "create",
			`{"path": "shop/prices.py", "text": "def total(prices, discount=0):\n    \"\"\"Returns the sum, less the discount in percent.\"\"\"\n    result = 0\n    for price in prices:\n        result += price\n    return result - discount\n"}`)
		require.Zero(t, status)
		_, status = call(t, b, "create",
			`{"path": "shop/main.py", "text": "from prices import total\n\nprint(total([100, 100], discount=10))\n"}`)
		require.Zero(t, status)
		require.Equal(t, "190\n", do(t, b, "python3 shop/main.py"), "the bug")
		before := do(t, b, "cat shop/prices.py")

		output, _ := call(t, b, "find_file", `{"name": "*.py"}`)
		require.Contains(t, output, "./shop/prices.py\n")
		output, _ = call(t, b, "search_dir", `{"term": "discount", "dir": "shop"}`)
		require.Contains(t, output, "./shop/prices.py:6:     return result - discount\n")
		output, _ = call(t, b, "open", `{"path": "shop/prices.py", "line": 6}`)
		require.Contains(t, output, "\n6:    return result - discount\n")

		output, status = call(t, b, "edit",
			`{"start": 6, "end": 6, "text": "result -= result * discount / 100\n    return result"}`)
		require.Equal(t, 1, status)
		require.Contains(t, output, "Refused: the edit would break the syntax. ")
		require.Contains(t, output, "  File \"prices.py\", line 7\n      return result\n  "+
			"IndentationError: unexpected indent\n")
		require.Contains(t, output, "With the edit it would have been:\n3:    result = 0\n4:    "+
			"for price in prices:\n5:        result += price\n6:result -= result * discount / "+
			"100\n7:    return result\nIt is:\n")
		require.Contains(t, output, "6:    return result - discount\nCorrect the edit")
		require.Equal(t, before, do(t, b, "cat shop/prices.py"))

		output, status = call(t, b, "edit",
			`{"start": 6, "end": 6, "text": "    result -= result * discount / 100\n    return result"}`)
		require.Zero(t, status, output)
		require.Contains(t, output, "Replaced 1 line at line 6 by 2 lines.\n[File: ")
		require.Equal(t, "180.0\n", do(t, b, "python3 shop/main.py"))
		output, status = call(t, b, "str_replace",
			`{"old": "discount / 100", "new": "discount // 100"}`)
		require.Zero(t, status, output)
		require.Equal(t, "180\n", do(t, b, "python3 -B shop/main.py"))
	}, agentskills.Plugin())
}

// The commands come before programs of the same names in the image. --help prints what Go has.
func TestHelp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b boxtest.Box) {
		for _, tool := range agentskills.Tools() {
			require.Equal(t, tool.Help, do(t, b, tool.Name+" --help"))
			require.True(t, strings.HasSuffix(strings.TrimSpace(do(t, b, "command -v "+tool.Name)),
				"/agentskills/bin/"+tool.Name))
		}
	})
}
