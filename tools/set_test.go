package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

type query struct {
	Word  string   `json:"word" jsonschema:"the word to look up"`
	Limit int      `json:"limit,omitempty" jsonschema:"the most answers"`
	In    []string `json:"in,omitempty" jsonschema:"the books"`
}

func lookup(_ context.Context, q query) (string, error) {
	if q.Word == "xyzzy" {
		return "", errors.New("no such word")
	}
	return fmt.Sprintf("%s %d %v", q.Word, q.Limit, q.In), nil
}

func TestFunc(t *testing.T) {
	t.Parallel()
	set := combined(t, Func("lookup", "Looks a word up.", lookup))
	tool := set.Tools()[0]
	require.Equal(t, "lookup", tool.Name)
	require.Equal(t, "Looks a word up.", tool.Description)
	schema, err := json.Marshal(tool.Schema)
	require.NoError(t, err)
	require.JSONEq(t, `{"type": "object", "required": ["word"], "additionalProperties": false, "properties": {
		"word": {"type": "string", "description": "the word to look up"}, "limit": {"type": "integer", "description": "the most answers"},
		"in": {"type": ["null", "array"], "items": {"type": "string"}, "description": "the books"}}}`, string(schema))

	require.Equal(t, "go 0 []", text(t, set, "lookup", "word", "go"))
	require.Equal(t, "go 3 [a b]", text(t, set, "lookup", "word", "go", "limit", 3.0, "in",
		[]string{"a", "b"}))
	require.Equal(t, "error: no such word\n", refused(t, set, "lookup", "word", "xyzzy"))
	require.Equal(t, "go 3 []", call(t, set, `{"word": "go", "limit": 3.0, "in": null}`),
		"3.0 is an integer, and null leaves an argument out")
}

func call(t *testing.T, s *Set, raw string) string {
	text, err := s.Call(t.Context(), "lookup", json.RawMessage(raw))
	require.NoError(t, err)
	return text
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	set := combined(t, Func("lookup", "Looks a word up.", lookup),
		Func("nothing", "Does nothing.", func(context.Context, struct{}) (string, error) {
			return "", nil
		}))
	takes := "\nIt takes:\n- word (string, required): the word to look up\n- limit (integer): " +
		"the most answers\n- in (array): the books\n"
	for _, c := range []struct{ args, says string }{
		{``, "error: wrong arguments for lookup:\n- the argument \"word\" is missing" + takes},
		{`{"Word": "a", "limits": 3}`, "- there is no argument \"Word\": did you mean " +
			"\"word\"?\n- there is no argument \"limits\": did you mean \"limit\"?\n- the " +
			"argument \"word\" is missing" + takes},
		{`{"word": 3, "limit": "x"}`, "- the argument \"limit\" has to be an integer, not " +
			"\"x\"\n- the argument \"word\" has to be a string, not 3" + takes},
		{`{"word": "a", "limit": 2.5}`, `the argument "limit" has to be an integer, not 2.5`},
		{`{"word": "a", "limit": 1e300}`, `the argument "limit" has to be an integer, not 1e300`},
		{`{"word": null}`, `the argument "word" has to be a string, not null`},
		{`{"word": "a", "in": ["b", 3]}`, `the argument "in" has to be an array, not ["b", 3]`},
		{`{"word": "a", "limit": "2.5"}`, `the argument "limit" has to be an integer, not "2.5"`},
		{`{"word": "a", "limit": "null"}`, `the argument "limit" has to be an integer, not "null"`},
		{`{"word": "a", "in": "[]"}`, `the argument "in" has to be an array, not "[]"`},
		{`["word"]`, "the arguments have to be one JSON object, not [\"word\"]\n"},
		{`{"word": "a"`, "the arguments have to be one JSON object: unexpected end of JSON input\n"},
		{`"word"`, "the arguments have to be one JSON object, not \"word\"\n"},
	} {
		got := call(t, set, c.args)
		require.Contains(t, got, c.says, c.args)
	}
	require.Equal(t, "error: there is no tool \"look_up\": did you mean \"lookup\"?\n",
		refused(t, set, "look_up"))
	require.Equal(t, "error: there is no tool \"execute\": use one of lookup, nothing\n",
		refused(t, set, "execute"))
	require.Contains(t, refused(t, set, "nothing", "a", 1),
		"- there is no argument \"a\"\nIt takes no arguments.")
	require.Equal(t, noOutput, text(t, set, "nothing"))

	type small struct {
		N    int8    `json:"n"`
		Yes  bool    `json:"yes,omitempty"`
		Far  float64 `json:"far,omitempty"`
		Name string  `json:"name,omitempty"`
	}
	set = combined(t, Func("small", "", func(_ context.Context, s small) (string, error) {
		return fmt.Sprint(s), nil
	}))
	require.Equal(t, "{5 true 0.5 7}", text(t, set, "small", "n", "5", "yes", "true", "far", "0.5",
		"name", "7"), "some models quote numbers and booleans")
	require.Equal(t, "{5 false 0 }", text(t, set, "small", "n", " 5 ", "yes", "False"))
	require.Contains(t, refused(t, set, "small", "n", 5, "yes", "yes"),
		`the argument "yes" has to be a boolean, not "yes"`)
	got := refused(t, set, "small", "n", 300)
	require.Contains(t, got, `the argument "n" has to be an integer from -128 to 127, not 300`)
	require.NotContains(t, got, "int8")
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	one := Func("lookup", "", lookup)
	_, err := New(one, one)
	require.EqualError(t, err,
		`tools: two tools are called "lookup": give one of the sets a Prefix`)
	both := combined(t, one, one.Prefix("my_"))
	require.Equal(t, "a 0 []", text(t, both, "my_lookup", "word", "a"))
	_, err = New(Func("look up", "", lookup))
	require.ErrorContains(t, err, `the tool name "look up" has to be`)
	_, err = New(Func("f", "", func(context.Context, chan int) (string, error) { return "", nil }))
	require.ErrorContains(t, err, "the arguments of the tool f")
	broken := Func("f", "", func(context.Context, string) (string, error) { return "", nil })
	_, err = New(broken)
	require.ErrorContains(t, err, "have to be a struct, not string")
	_, err = broken.Call(t.Context(), "f", nil)
	require.ErrorContains(t, err, "have to be a struct")
}

// TestPrefix shows that the names of tools get a prefix in descriptions and errors too.
func TestPrefix(t *testing.T) {
	t.Parallel()
	box := local(t)
	set := combined(t, Shell(box, brief).Prefix("my_").Prefix("the-"),
		Files(box.Files(), Config{}).Prefix("my_"))
	for _, tool := range set.Tools() {
		if tool.Name == "the-my_run" {
			require.Contains(t, tool.Description, "(use `the-my_wait`, `the-my_answer` or "+
				"`the-my_interrupt`)")
		}
	}
	require.Equal(t, "error: no command is unfinished: use `the-my_run` to run one\n",
		refused(t, set, "the-my_wait"))
	require.Contains(t, refused(t, set, "the-my_run"), "wrong arguments for the-my_run:")
	require.Contains(t, text(t, set, "the-my_run", "command", "seq 10000"),
		"read it with `the-my_output`]")
	text(t, set, "the-my_run", "command", "read x")
	require.Contains(t, refused(t, set, "the-my_run", "command", "true"),
		"use `the-my_wait`, `the-my_answer` or `the-my_interrupt` first")
	require.Contains(t, refused(t, set, "my_edit", "path", "f", "old", "", "new", "x"),
		"use `my_write` to write a new file")
	text(t, set, "the-my_answer")

	own := Func("lookup", "Use `lookup` of \"lookup\", and `other`.", lookup).Prefix("x_")
	require.Equal(t, "Use `x_lookup` of \"lookup\", and `other`.", own.Tools()[0].Description)
	for _, prefix := range []string{"my tools: ", "ä", strings.Repeat("x", 60)} {
		_, err := New(Func("lookup", "", lookup).Prefix(prefix))
		require.ErrorContains(t, err, fmt.Sprintf("the tool name %q has to be", prefix+"lookup"))
	}
}

// TestDescriptions shows that each description is one paragraph, and names only tools of its set.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	box := local(t)
	for _, set := range []*Set{
		Shell(box, Config{}), Jobs(box, Config{}), Files(box.Files(), Config{}),
		Python(box, Config{}), Skills(box, Config{}),
		Browser(box, browser.Config{}, Config{}),
	} {
		names := combined(t, set).names()
		for _, tool := range set.Tools() {
			require.NotContains(t, tool.Description, "\n")
			for _, quoted := range quotedName.FindAllString(tool.Description, -1) {
				require.Contains(t, names, strings.Trim(quoted, "`"), tool.Description)
			}
			for _, name := range names { // a name that is no English word is in backquotes
				if strings.Contains(name, "_") {
					require.Equal(t, strings.Count(tool.Description, name),
						strings.Count(tool.Description, "`"+name+"`"), tool.Description)
				}
			}
		}
	}
}

// TestErrors shows which errors of a tool are errors of the call: those that no model can correct.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{sandbox.ErrClosed,
		&sandbox.LostError{Box: "Box", Reason: "gone"}} {
		set := combined(t, Func("f", "", func(context.Context, struct{}) (string, error) {
			return "", fmt.Errorf("do it: %w", cause)
		}))
		_, err := set.Call(t.Context(), "f", nil)
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "call f: do it: ")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	set := combined(t, Func("f", "", func(ctx context.Context, _ struct{}) (*Reply, error) {
		cancel(errors.New("enough"))
		return nil, context.Canceled
	}))
	_, err := set.Call(ctx, "f", nil)
	require.EqualError(t, err, "call f: context canceled: enough")
	require.Equal(t, "error: context canceled\n", refused(t, set, "f"),
		"the canceled context is not the call's")
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	set := combined(t, Func("lookup", "", lookup))
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			r, err := set.Do(t.Context(), "lookup", fmt.Appendf(nil,
				`{"word": "w%d", "limit": %d.0}`, i, i))
			if err != nil || r.Text != fmt.Sprintf("w%d %d []", i, i) {
				t.Error(r, err)
			}
		})
	}
	all.Wait()
}
