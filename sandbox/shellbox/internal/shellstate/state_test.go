package shellstate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

func TestStatements(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"a\nb", []string{"a", "b"}},
		{"a='1\n2'\nb", []string{"a='1\n2'", "b"}},
		{"a=\"1\n\\\"2\"\nb\n", []string{"a=\"1\n\\\"2\"", "b"}},
		{"a=$'it\\'s\n'\nb\n", []string{"a=$'it\\'s\n'", "b"}},
		{"a='it'\"'\"'s\n'\nb\n", []string{"a='it'\"'\"'s\n'", "b"}},
		{"a='it'\\''s'\nb\n", []string{"a='it'\\''s'", "b"}},
		{"a='open\nb", []string{"a='open\nb"}},
		{"a\\", []string{"a\\"}},
		{"a=\"$'\"\nb", []string{"a=\"$'\"", "b"}},
	} {
		require.Equal(t, c.want, statements(c.text), "%q", c.text)
	}
}

// TestCut: a state that is not whole is none.
func TestCut(t *testing.T) {
	const mark = "@M."
	whole := mark + "shellopts braceexpand\n" + mark + "variables\ndeclare -- x=\"1\"\n" + mark +
		"end"
	s, err := parse([]byte(whole), mark)
	require.NoError(t, err)
	require.Equal(t, `declare -- x="1"`, s.items["variable x"])
	for i := range whole {
		_, err := parse([]byte(whole[:i]), mark)
		require.ErrorIs(t, err, errCut)
	}
	_, err = parse([]byte(whole+"\x00"), mark)
	require.ErrorContains(t, err, "NUL")
	_, err = parse([]byte(whole+strings.Repeat("\n", maxLines+1)), mark)
	require.ErrorContains(t, err, "lines")
}

// FuzzState reads what hostile shells say, makes commands of it, and compares.
func FuzzState(f *testing.F) {
	const mark = "@M."
	f.Add([]byte(mark+"shellopts a:b\n"+mark+"variables\ndeclare -ax x=([0]=\"1\")\n"+mark+
		"function f\nf ()\n{\n}\ndeclare -fx f\n"+mark+"history\n#1\nx\n"+mark+"early\n"+
		"declare -x POSIXLY_CORRECT=\"1\"\nbuiltin () {\n}\n"+mark+"files\n0 : tty\n7 1:2 /a\nb\n"+
		mark+"stat 1 (a b) c\n"+mark+"soft\nx (-n) 1\n"+mark+"end\n"), []byte(mark+"traps\n"))
	f.Add([]byte(mark+"flags u\n"+mark+"options\nset -o nounset\n"+mark+"variables\nx='1'\n"+mark+
		"exported\nexport x='1'\n"+mark+"functions\nf is a function\n"+mark+
		"traps\ntrap -- 'x' USR1\n"), []byte(mark+"shellopts\n"+mark+"end"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var states []*State
		for _, said := range [][]byte{a, b} {
			if s, err := parse(said, mark); err == nil && s.parts["gone"] == nil {
				again, err := Decode(s.Encode())
				require.NoError(t, err)
				require.Empty(t, different(s, again, nil))
				states = append(states, s)
			}
		}
		for _, want := range states {
			for _, got := range states {
				restoreBash(got, want, []string{"x"})
				restoreSh(got, want, nil)
				for _, l := range lost(Session{}, want, got, nil) {
					require.LessOrEqual(t, len(l.What), maxWhat+len("…"))
					require.NotZero(t, l.Kind&sandbox.AnyLoss)
				}
			}
		}
	})
}
