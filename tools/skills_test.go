package tools

import (
	"testing"

	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/stretchr/testify/require"
)

func TestSkills(t *testing.T) {
	t.Parallel()
	box := local(t)
	require.NoError(t, box.InitPlugins(t.Context(), agentskills.Plugin()))
	set := combined(t, Shell(box, patient...), Skills(box, patient...))
	require.Len(t, set.Tools(), 6+len(agentskills.Tools()))
	for _, tool := range set.Tools() {
		if tool.Name == "open" {
			require.Equal(t, []string{"path", "line"}, tool.Schema.PropertyOrder)
		}
	}
	require.Contains(t, text(t, set, "create", "path", "a.py", "text", "x = 1\ny = 2\n"), "y = 2")
	require.Contains(t, text(t, set, "open", "path", "a.py", "line", 2.0), "y = 2")
	require.Contains(t, text(t, set, "edit", "start", 2, "end", 2, "text", "y = 3"), "y = 3")
	require.Equal(t, "x = 1\ny = 3\n", text(t, set, "run", "command", "cat a.py"))
	require.Contains(t, refused(t, set, "open", "file", "a.py"), "- there is no argument \"file\"\n- the argument \"path\" is missing\nIt takes:\n- path (string, required): the file\n")
	require.Contains(t, refused(t, set, "open", "path", "a.py", "line", 0), `the argument "line" has to be integer from 1, not 0`)
}
