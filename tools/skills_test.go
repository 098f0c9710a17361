package tools

import (
	"errors"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func TestSkills(t *testing.T) {
	t.Parallel()
	box := local(t)
	require.NoError(t, box.InitPlugins(t.Context(), agentskills.Plugin()))
	set := combined(t, Shell(box, patient), Skills(box, patient))
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
	require.Contains(t, refused(t, set, "open", "file", "a.py"),
		"- there is no argument \"file\"\n- the argument \"path\" is missing\nIt takes:\n- path "+
			"(string, required): the file\n")
	require.Contains(t, refused(t, set, "open", "path", "a.py", "line", 0),
		`the argument "line" has to be an integer of at least 1, not 0`)
}

// TestBoxSkills: the skills of a Box have a prefix, and know of the commands of its shell.
func TestBoxSkills(t *testing.T) {
	t.Parallel()
	box := local(t)
	with := brief
	with.Skills = true
	set := combined(t, Box(box, with))
	_, err := set.Do(t.Context(), "skill_open", args(t, "path", "a.py"))
	require.ErrorIs(t, err, agentskills.ErrNotInstalled)
	require.NoError(t, box.InitPlugins(t.Context(), agentskills.Plugin()))
	require.Len(t, set.Tools(), len(combined(t, Box(box, brief)).Tools())+len(agentskills.Tools()))
	text(t, set, "write", "path", "a.py", "content", "x = 1\n")
	require.Contains(t, text(t, set, "skill_open", "path", "a.py"), "x = 1")
	require.Contains(t, refused(t, set, "skill_open", "file", "a.py"),
		"wrong arguments for skill_open:")
	for _, tool := range set.Tools() {
		if tool.Name == "skill_open" {
			require.Contains(t, tool.Description, "`skill_goto`, `skill_scroll_down`")
		}
	}
	require.Contains(t, text(t, set, "run", "command", "read -r x"), "[waiting for a line")
	require.Contains(t, refused(t, set, "skill_create", "path", "b.txt"),
		"so this one was not run: use `wait`, `answer` or `interrupt` first")
}

// TestSkillsShareSession shows that all sets of a session know of an unfinished command.
func TestSkillsShareSession(t *testing.T) {
	t.Parallel()
	box := local(t)
	require.NoError(t, box.InitPlugins(t.Context(), agentskills.Plugin()))
	shell := Shell(box, brief)
	set := combined(t, combined(t, shell), Skills(box, brief),
		Shell(box, patient).Prefix("other_"))
	leave := func(tool, command string) {
		t.Helper()
		command = "until [ -e go ]; do sleep 0.02; done; rm go; touch gone; " + command
		require.Contains(t, text(t, set, tool, "command", command, "seconds", 0.05),
			"[still running after ")
		require.Contains(t, refused(t, set, "create", "path", "b.txt"),
			"so this one was not run: use `other_wait`")
		require.NoError(t, box.Files().WriteFile(t.Context(), "go", nil, 0o600))
	}
	atPrompt := func() {
		t.Helper()
		require.Eventually(t, func() bool {
			_, err := box.Files().Stat(t.Context(), "gone")
			return err == nil && errors.Is(box.Type(t.Context(), ""), sandbox.ErrIdle)
		}, testenv.Limit, 5*time.Millisecond)
		require.NoError(t, box.Files().Remove(t.Context(), "gone"))
	}
	leave("run", "echo THE RESULT; false")
	atPrompt()
	require.Contains(t, text(t, set, "create", "path", "a.txt", "text", "hi"),
		"[the last command has ended; this is the rest of its output]\nTHE RESULT\n[exit status "+
			"1]\n[this is the output of the new command]\n[File: ")
	require.Contains(t, text(t, set, "output", "offset", 0), "THE RESULT\n")

	leave("other_run", "echo ANOTHER; (exit 3)")
	require.Contains(t, text(t, set, "wait"), "ANOTHER\n[exit status 3]\n")

	text(t, set, "run", "command", "seq 2000 >long; export SANDSHELL_WINDOW=2000")
	shown := text(t, set, "open", "path", "long")
	page := text(t, set, "output", "offset", number(t,
		"begins at offset (\\d+): read it with `other_output`",
		shown))
	require.Contains(t, page, "150")
}
