package agentskills_test

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/plugin/agentskills"
	"github.com/stretchr/testify/require"
)

func TestTools(t *testing.T) {
	t.Parallel()
	bin, err := fs.ReadDir(agentskills.Plugin().Files, "bin")
	require.NoError(t, err)
	tools := agentskills.Tools()
	require.Len(t, tools, len(bin), "a command that is no tool")
	prompt := agentskills.Prompt()
	for _, tool := range tools {
		require.True(t, strings.HasPrefix(tool.Usage, tool.Name), tool.Usage)
		require.Greater(t, len(tool.Description), 20, tool.Name)
		require.NotContains(t, tool.Description, "string)",
			"a line about an argument that is not understood")
		require.NotContains(t, tool.Description, "\n")
		require.Contains(t, prompt, "\n"+tool.Help)
		var schema struct {
			Type                 string
			Properties           map[string]struct{ Type, Description string }
			Required             []string
			AdditionalProperties *bool
		}
		require.NoError(t, json.Unmarshal(tool.Parameters, &schema), tool.Name)
		require.Equal(t, "object", schema.Type)
		require.NotNil(t, schema.Required)
		require.False(t, *schema.AdditionalProperties)
		words := strings.FieldsFunc(tool.Usage, func(c rune) bool {
			return strings.ContainsRune(" :[]<-", c)
		})
		require.Len(t, schema.Properties, len(words)-1, tool.Name)
		told := tool.Description + string(tool.Parameters) // in words for calls, not for a shell
		require.NotContains(t, told, "here-document")
		for _, word := range words[1:] {
			if strings.ToUpper(word) == word {
				require.NotRegexp(t, `\b`+word+`\b`, told)
			}
			require.NotEmpty(t, schema.Properties[strings.ToLower(word)].Description, word)
		}
	}
	require.JSONEq(t, `{"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
		"path": {"type": "string", "description": "the file"},
		"line": {"type": "integer", "minimum": 1, "description": "a line that the window shows; default: the first line"}}}`, string(tools[0].Parameters))
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, command string }{
		{"open", `{"path": "a.py"}`, "open a.py"},
		{"open", `{"path": "a", "line": "3"}`, "open a 3"},
		{"search_dir", `{"term": "a", "regex": "true"}`, "search_dir --regex a"},
		{"open", `{"path": "a b's", "line": 3.0}`, `open 'a b'\''s' 3`},
		{"open", `{"path": "-x", "line": null}`, `open -- '-x'`},
		{"scroll_up", ``, "scroll_up"},
		{"scroll_up", `{}`, "scroll_up"},
		{"search_dir", `{"term": "a.*b", "regex": true, "dir": ""}`, "search_dir --regex 'a.*b'"},
		{"search_dir", `{"term": "--regex", "regex": false}`, "search_dir -- '--regex'"},
		{"create", `{"path": "~/a"}`, "create '~/a'"},
		{"create", `{"path": "a", "text": "x"}`, "create a <<'END'\nx\nEND"},
		{"edit", `{"start": 1, "end": 2, "text": ""}`, "edit 1:2 <<'END'\nEND"},
		{"edit", `{"start": 1, "end": 2, "text": "a\nEND\nEND2\nb\n", "file": "f"}`,
			"edit 1:2 f <<'END3'\na\nEND\nEND2\nb\nEND3"},
		{"insert", `{"line": 0, "text": "END"}`, "insert 0 <<'END2'\nEND\nEND2"},
		{"str_replace", `{"old": "a\n", "new": ""}`, "str_replace 'a\n' ''"},
	} {
		command, err := agentskills.Command(c.name, json.RawMessage(c.args))
		require.NoError(t, err)
		require.Equal(t, c.command, command)
	}
	for _, c := range []struct{ name, args, says string }{
		{"view", `{}`, `there is no tool "view"; there are open, goto, `},
		{"open", `{}`, `open: the argument "path" is missing: the file`},
		{"open", `{"path": null}`, `open: the argument "path" is missing`},
		{"open", `{"path": 3}`, `open: the argument "path" has to be a string, not 3`},
		{"open", `{"path": "a", "line": "3x"}`,
			`open: the argument "line" has to be an integer, not "3x"`},
		{"open", `{"path": "a", "line": "0"}`,
			`open: the argument "line" has to be an integer of at least 1, not "0"`},
		{"open", `{"path": "a", "line": 2.5}`, `has to be an integer, not 2.5`},
		{"open", `{"path": "a", "line": 0}`, `open: the argument "line" has to be an integer of at least 1, not 0`},
		{"open", `{"path": "a", "line": 1e300}`, `has to be an integer of at least 1, not 1e300`},
		{"open", `{"path": "a\u0000"}`, `the argument "path" has a zero byte`},
		{"open", `{"path": "a", "lines": 3}`,
			`open: there is no argument "lines": the arguments are path, line`},
		{"open", `["a"]`, `open: the arguments have to be a JSON object, not ["a"]`},
		{"open", `"main.go"`, `open: the arguments have to be a JSON object, not "main.go"`},
		{"open", `{"path": "a"`, `open: the arguments have to be a JSON object`},
		{"open", `{"path": ["a"]}`, `has to be a string, not ["a"]`},
		{"search_dir", `{"term": "a", "regex": "yes"}`, `has to be a boolean, not "yes"`},
		{"scroll_up", `{"lines": 3}`, `scroll_up: there is no argument "lines": the tool takes none`},
		{"str_replace", `{"old": "a"}`, `str_replace: the argument "new" is missing`},
	} {
		_, err := agentskills.Command(c.name, json.RawMessage(c.args))
		require.ErrorContains(t, err, c.says)
	}
	_, err := agentskills.Tool{}.Command(nil)
	require.Error(t, err)
}
