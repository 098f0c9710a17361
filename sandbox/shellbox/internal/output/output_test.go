package output

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

func newOutput(limit int) *Output {
	o := New(limit)
	return &o
}

// all returns the output that no Result has returned, in at most limit bytes.
func (o *Output) all(limit int, end bool) *Piece { return o.All(o.Open(limit, nil), end) }

func TestOutputIsGivenOnce(t *testing.T) {
	o := newOutput(sandbox.DefaultMaxOutput)
	take := func(end bool) string { return o.all(sandbox.DefaultMaxOutput, end).text }
	o.Write([]byte("one\nname? "))
	require.Equal(t, "one\nname? ", take(false))
	require.Equal(t, "", take(false))
	o.Write([]byte("ann\nhello"))
	require.Equal(t, "ann\nhello", take(false))
	o.Write([]byte("\n10%\r"))
	require.Equal(t, "\n10%", take(false))
	o.Write([]byte("20%")) // what was shown has changed: it is shown whole
	require.Equal(t, "20%", take(true))
}

// Two calls at once each get all of the output, with their own limit and pattern.
func TestOutputOfTwoCalls(t *testing.T) {
	o := newOutput(sandbox.DefaultMaxOutput)
	o.Write([]byte("one\n"))
	a, b := o.Open(100, regexp.MustCompile("t.o")), o.Open(4, nil)
	o.Write([]byte("two\nthree\n"))
	require.NotNil(t, a.match)
	require.Equal(t, "one\ntwo", o.UpToMatch(a).text)
	p := o.All(b, false)
	require.Equal(t, "one\n"[:2]+"e\n", p.text)
	require.EqualValues(t, 10, p.omitted)
	require.Empty(t, o.all(100, true).text)
}

func TestOutputKeepsHeadAndTail(t *testing.T) {
	o := newOutput(100)
	var all strings.Builder
	for range 1000 {
		all.WriteString("0123456789\n")
		o.Write([]byte("0123456789\n"))
	}
	p := o.all(100, true)
	require.Equal(t, all.String()[:p.at], p.text[:p.at])
	require.Equal(t, all.String()[all.Len()-len(p.text)+p.at:], p.text[p.at:])
	require.EqualValues(t, all.Len()-len(p.text), p.omitted)
	require.GreaterOrEqual(t, len(p.text), 88)
}

// An output is cut at the end of a line, where there is one near.
func TestOutputIsCutAtLines(t *testing.T) {
	o := newOutput(1010)
	o.Write([]byte(strings.Repeat("0123456789012345678\n", 1000)))
	p := o.all(1010, true)
	require.Equal(t, strings.Repeat("0123456789012345678\n", 50), p.text)
	require.Equal(t, 500, p.at)
	require.EqualValues(t, 20*950, p.omitted)
}

func TestUntil(t *testing.T) {
	for _, c := range []struct {
		name, re     string
		chunks       []string
		text, rest   string
		matched      string
		matchedAfter int // chunks
	}{
		{"InALine", "b+", []string{"abbc\nd\n"}, "abb", "c\nd\n", "bb", 1},
		{"AcrossChunks", "ready\n", []string{"get re", "ady\nmore"}, "get ready\n", "more",
			"ready\n", 2},
		{"InTheUnfinishedLine", "login: ", []string{"x\nlog", "in: y"}, "x\nlogin: ", "y",
			"login: ", 2},
		{"Cleaned", "red", []string{"\x1b[31mr\x1b[1med\x1b[0m!"}, "red", "!", "red", 1},
		{"Empty", "", []string{"a\n"}, "", "a\n", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOutput(sandbox.DefaultMaxOutput)
			v := o.Open(sandbox.DefaultMaxOutput, regexp.MustCompile(c.re))
			for i, chunk := range c.chunks {
				require.Equal(t, i >= c.matchedAfter, v.match != nil)
				o.Write([]byte(chunk))
			}
			require.NotNil(t, v.match)
			p := o.UpToMatch(v)
			require.Equal(t, c.text, p.text)
			require.Equal(t, c.matched, p.matched)
			require.Equal(t, c.rest, o.all(sandbox.DefaultMaxOutput, true).text)
		})
	}
}

// The output of before the call may be cut in the middle. Until finds a match on either side of the
// cut, and nothing behind the match is lost.
func TestUntilBesideACut(t *testing.T) {
	const half = 50
	for _, c := range []struct {
		re, text             string
		omitted, restOmitted int
	}{
		{"^b", "b", 0, 1000},
		{"y$", strings.Repeat("b", half) + strings.Repeat("e", half-1) + "y", 1000, 0},
	} {
		o := newOutput(2 * half)
		before := strings.Repeat("b", half) + strings.Repeat("-", 999) + "\n" +
			strings.Repeat("e", half-1) + "y"
		o.unreported.kept.WriteString(before)
		v := o.Open(2*half, regexp.MustCompile(c.re))
		require.NotNil(t, v.match)
		p := o.UpToMatch(v)
		require.Equal(t, c.text, p.text)
		require.EqualValues(t, c.omitted, p.omitted)
		rest := o.all(2*half, true)
		require.Len(t, p.text+rest.text, 2*half)
		require.EqualValues(t, c.restOmitted, rest.omitted)
	}
}

func TestOutputIsCutBetweenRunes(t *testing.T) {
	o := newOutput(sandbox.DefaultMaxOutput)
	o.Write([]byte(strings.Repeat("€", 100)))
	p := o.all(100, false)
	require.Equal(t, strings.Repeat("€", 32), p.text)
	require.EqualValues(t, 300-96, p.omitted)
}
