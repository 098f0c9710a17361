package output

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// What a Result has shown comes again, whole, if it is rewritten. What stays does not.
func TestRewrittenRows(t *testing.T) {
	for _, test := range []struct {
		name   string
		writes []string // a Result is taken after each
		want   []string
	}{
		{"OneOfThree", []string{"a 1\nb 1\nc 1\n", "\x1b[2A\x1b[Kb 2\n\n"},
			[]string{"a 1\nb 1\nc 1\n", "b 2\n"}},
		{"TheSame", []string{"a 1\nb 1\n", "\x1b[2A\x1b[Ka 1\n\x1b[Kb 1\n", "c\n"},
			[]string{"a 1\nb 1\n", "", "c\n"}},
		{"RowsAreAdded", []string{"a 1\n", "\x1b[A\x1b[Ka 2\nb 1\n", "c 1\n"},
			[]string{"a 1\n", "a 2\nb 1\n", "c 1\n"}},
		{"RowsAreErased", []string{"a 1\nb 1\n", "\x1b[2A\x1b[Jdone\n"},
			[]string{"a 1\nb 1\n", "done\n"}},
		{"Prompt", []string{"name? ", "ann\nhello ", "ann"},
			[]string{"name? ", "ann\nhello ", "ann"}},
		{"PromptBelowARewrittenLine", []string{"a 1\nname? ", "\r\x1b[A\x1b[Ka 2\n\x1b[6Cann\n"},
			[]string{"a 1\nname? ", "a 2\nname? ann\n"}},
		{"ScrolledOff", []string{"a\nb\n", strings.Repeat("x\n", 30)},
			[]string{"a\nb\n", strings.Repeat("x\n", 30)}},
		{"RewrittenAndScrolledOff", []string{"a\nb\n", "\x1b[AB\n" + strings.Repeat("x\n", 30)},
			[]string{"a\nb\n", "B\n" + strings.Repeat("x\n", 30)}},
		{"ALongLine", []string{strings.Repeat("x", 100), "y\n", "\x1b[Az\n"},
			[]string{strings.Repeat("x", 100), "y\n",
				strings.Repeat("x", 80) + "z" + strings.Repeat("x", 19) + "y\n"}},
		{"ALineLongerThanIsKept",
			[]string{strings.Repeat("x", 60<<10), strings.Repeat("y", 60<<10), "\n"},
			[]string{strings.Repeat("x", 60<<10), strings.Repeat("y", 60<<10), "\n"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, byBytes := newOutput(sandbox.DefaultMaxOutput), newOutput(sandbox.DefaultMaxOutput)
			for i, raw := range test.writes {
				end := i == len(test.writes)-1
				o.Write([]byte(raw))
				require.Equal(t, test.want[i], o.all(sandbox.DefaultMaxOutput, end).text)
				for _, b := range []byte(raw) {
					byBytes.Write([]byte{b})
				}
				require.Equal(t, test.want[i], byBytes.all(sandbox.DefaultMaxOutput, end).text)
			}
		})
	}
}

// A progress of many rows is as long as its last state, and Omitted is exact.
func TestManyFrames(t *testing.T) {
	o := newOutput(100)
	for n := range 200 {
		if n > 0 {
			o.Write([]byte("\x1b[20A"))
		}
		for i := range 20 {
			o.Write(fmt.Appendf(nil, "\x1b[2Krow %02d at %03d\n", i, n))
		}
	}
	p := o.all(100, true)
	require.EqualValues(t, 20*len("row 00 at 000\n")-len(p.text), p.omitted)
	require.True(t, strings.HasPrefix(p.text, "row 00 at 199\n"))
	require.True(t, strings.HasSuffix(p.text, "row 19 at 199\n"))
}

// Until finds a line at once, and also if it is rewritten in the same piece of output. The next
// Result has what came after the match.
func TestUntilInRows(t *testing.T) {
	frames := "starting\nport -\n\x1b[2A\x1b[Jready\nport 80\n\x1b[2A\x1b[Jstopped\nport -\n"
	for re, want := range map[string][2]string{
		"ready":       {"ready", "stopped\nport -\n"},
		"port 8":      {"ready\nport 8", "stopped\nport -\n"},
		"(?m)stop.*$": {"stopped", "\nport -\n"},
		"starting":    {"starting", "stopped\nport -\n"},
	} {
		o := newOutput(sandbox.DefaultMaxOutput)
		v := o.Open(sandbox.DefaultMaxOutput, regexp.MustCompile(re))
		o.Write([]byte(frames))
		require.NotNil(t, v.match, re)
		require.Equal(t, want[0], o.UpToMatch(v).text, re)
		require.Equal(t, want[1], o.all(sandbox.DefaultMaxOutput, true).text, re)
	}
}

// Two calls have their own notion of what has been shown.
func TestRowsOfTwoCalls(t *testing.T) {
	o := newOutput(sandbox.DefaultMaxOutput)
	o.Write([]byte("a 1\nb 1\n"))
	a, b := o.Open(1000, nil), o.Open(1000, nil)
	require.Equal(t, "a 1\nb 1\n", o.All(a, false).text)
	o.Write([]byte("\x1b[Ab 2\n"))
	c := o.Open(1000, nil)
	require.Equal(t, "a 1\nb 2\n", o.All(b, false).text)
	require.Equal(t, "b 2\n", o.All(c, false).text)
	require.Empty(t, o.all(1000, true).text)
}

// The positions of queries are those in what was written, even if it is searched in steps.
func TestQueriesInSteps(t *testing.T) {
	o := newOutput(1000)
	o.Open(1000, regexp.MustCompile("never"))
	o.Write([]byte("a\n\x1b[AB\x1b[6n\x1b[Hc\x1b[6n"))
	require.Len(t, o.Queries(), 2)
	require.Equal(t, 10, o.Queries()[0].End)
	require.Equal(t, 18, o.Queries()[1].End)
}
