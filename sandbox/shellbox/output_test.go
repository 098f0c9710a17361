package shellbox

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/sandbox"
)

func TestOutputIsGivenOnce(t *testing.T) {
	o := output{kept: headtail.Buffer{Max: sandbox.DefaultMaxOutput}}
	take := func(end bool) string { return o.take(sandbox.DefaultMaxOutput, end).text }
	o.write([]byte("one\nname? "))
	require.Equal(t, "one\nname? ", take(false))
	require.Equal(t, "", take(false))
	o.write([]byte("ann\nhello"))
	require.Equal(t, "ann\nhello", take(false))
	o.write([]byte("\n10%\r"))
	require.Equal(t, "\n10%", take(false))
	o.write([]byte("20%")) // what was shown has changed: it is shown whole
	require.Equal(t, "20%", take(true))
}

func TestOutputKeepsHeadAndTail(t *testing.T) {
	o := output{kept: headtail.Buffer{Max: 100}}
	var all strings.Builder
	for range 1000 {
		all.WriteString("0123456789\n")
		o.write([]byte("0123456789\n"))
	}
	p := o.take(100, true)
	require.Len(t, p.text, 100)
	require.Equal(t, all.String()[:50], p.text[:50])
	require.Equal(t, all.String()[all.Len()-50:], p.text[50:])
	require.EqualValues(t, all.Len()-100, p.omitted)
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
		{"AcrossChunks", "ready\n", []string{"get re", "ady\nmore"}, "get ready\n", "more", "ready\n", 2},
		{"InTheUnfinishedLine", "login: ", []string{"x\nlog", "in: y"}, "x\nlogin: ", "y", "login: ", 2},
		{"Cleaned", "red", []string{"\x1b[31mr\x1b[1med\x1b[0m!"}, "red", "!", "red", 1},
		{"Empty", "", []string{"a\n"}, "", "a\n", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := output{kept: headtail.Buffer{Max: sandbox.DefaultMaxOutput}}
			o.until, o.limit = regexp.MustCompile(c.re), sandbox.DefaultMaxOutput
			var p *piece
			for i, chunk := range c.chunks {
				if q := o.write([]byte(chunk)); q != nil {
					require.Nil(t, p, "a second match")
					require.Equal(t, c.matchedAfter, i+1)
					p = q
				}
			}
			require.NotNil(t, p)
			require.Equal(t, c.text, p.text)
			require.Equal(t, c.matched, p.matched)
			require.Equal(t, c.rest, o.take(sandbox.DefaultMaxOutput, true).text)
		})
	}
}

// What earlier calls have left may be cut. Until finds a match on either side, and of the rest nothing is lost.
func TestUntilBesideACut(t *testing.T) {
	const half = 50
	for _, c := range []struct {
		re, text             string
		omitted, restOmitted int
	}{
		{"^b", "b", 0, 1000},
		{"y$", strings.Repeat("b", half) + strings.Repeat("e", half-1) + "y", 1000, 0},
	} {
		o := output{kept: headtail.Buffer{Max: 2 * half}}
		before := strings.Repeat("b", half) + strings.Repeat("-", 999) + "\n" + strings.Repeat("e", half-1) + "y"
		o.kept.WriteString(before)
		p := o.expect(regexp.MustCompile(c.re), 2*half)
		require.NotNil(t, p)
		require.Equal(t, c.text, p.text)
		require.EqualValues(t, c.omitted, p.omitted)
		rest := o.take(2*half, true)
		require.Len(t, p.text+rest.text, 2*half)
		require.EqualValues(t, c.restOmitted, rest.omitted)
	}
}

func TestOutputIsCutBetweenRunes(t *testing.T) {
	o := output{kept: headtail.Buffer{Max: sandbox.DefaultMaxOutput}}
	o.write([]byte(strings.Repeat("€", 100)))
	p := o.take(100, false)
	require.Equal(t, strings.Repeat("€", 32), p.text)
	require.EqualValues(t, 300-96, p.omitted)
}

// What set -x traces of the engine's own is no output; what it traces of the command is.
func TestTrimTrace(t *testing.T) {
	p := (&piece{text: "+ echo x\nx\n+ _ss_e 0\n++ case braceexpand in\n++ printf ...\n"}).trimTrace()
	require.Equal(t, "+ echo x\nx\n", p.text)
}
