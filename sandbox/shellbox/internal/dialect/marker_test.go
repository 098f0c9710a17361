package dialect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testNonce is short, so that the tests can be read.
func testNonce(kind Kind, seq int) string { return fmt.Sprintf("N%c%d", kind, seq) }

// feed gives the chunks to a scanner and returns the text and the markers that come out.
func feed(chunks ...string) (text string, markers []Marker) {
	s := Scanner{nonce: testNonce, moreNonce: "NP"}
	for _, chunk := range chunks {
		for rest := []byte(chunk); len(rest) > 0; {
			var t []byte
			var m *Marker
			t, m, rest = s.Next(rest)
			text += string(t)
			if m != nil {
				markers = append(markers, *m)
			}
		}
	}
	return text + string(s.Flush()), markers
}

func TestScanner(t *testing.T) {
	d := func(status, seq int, cwd string) Marker {
		return Marker{Kind: End, Status: status, Seq: seq, Dir: cwd}
	}
	for _, c := range []struct {
		name, in, text string
		markers        []Marker
	}{
		{"None", "plain\ntext", "plain\ntext", nil},
		{"Begin", "echo\n\x1b]133;C;7;NC7;\x07out", "echo\nout", []Marker{{Kind: 'C', Seq: 7}}},
		{"BeginWithBackground", "\x1b]133;C;7;NC7;1234\x07", "",
			[]Marker{{Kind: 'C', Seq: 7, Background: 1234}}},
		{"End", "out\x1b]133;D;8;ND8;130;0;/a b;ND8\x07", "out", []Marker{d(130, 8, "/a b")}},
		{"Answer", "out\x1b]133;D;9;ND9;8.130;0;/a;ND9\x07", "out",
			[]Marker{{Kind: End, Seq: 9, Status: 130, StatusOf: 8, Dir: "/a"}}},
		{"AnyDirectory", "\x1b]133;D;1;ND1;0;0;/a\n\x07\x1b]133;;x;ND1\x07", "",
			[]Marker{d(0, 1, "/a\n\x07\x1b]133;;x")}},
		{"CutInItsDirectory", "out\x1b]133;D;8;ND8;0;0;/a\x1b]133;D;9;ND9;130;0;/b;ND9\x07more",
			"outmore", []Marker{d(130, 9, "/b")}},
		{"CutTwice", "\x1b]133;D;8;ND8;0;0;/a\x1b]133;D;9;ND9;0;0;\x1b]133;C;10;NC10;\x07", "",
			[]Marker{{Kind: 'C', Seq: 10}}},
		{"Bash", "\x1b]133;D;8;ND8;0;b900;/;ND8\x07", "",
			[]Marker{{Kind: 'D', Seq: 8, Dir: "/", Bash: true, IdleLimit: 900}}},
		{"IdleLimitHuge", "\x1b]133;D;8;ND8;0;b9223372036854775807;/;ND8\x07", "",
			[]Marker{{Kind: 'D', Seq: 8, Dir: "/", Bash: true, IdleLimit: math.MaxInt32}}},
		{"IdleLimitNegative", "\x1b]133;D;8;ND8;0;-9223372036854775808;/;ND8\x07", "",
			[]Marker{d(0, 8, "/")}},
		{"IdleLimitWord", "\x1b]133;D;8;ND8;0;1-2;/;ND8\x07", "\x1b]133;D;8;ND8;0;1-2;/;ND8\x07",
			nil},
		{"MoreLines", "a\x1b]133;P;NP\x07b\x1b]133;P;NX\x07", "ab\x1b]133;P;NX\x07",
			[]Marker{{Kind: 'P'}}},
		{"WrongNonce", "\x1b]133;C;7;NC8;\x07x", "\x1b]133;C;7;NC8;\x07x", nil},
		{"NonceOfTheOtherKind", "\x1b]133;D;7;NC7;0;/;NC7\x07x", "\x1b]133;D;7;NC7;0;/;NC7\x07x",
			nil},
		{"AWrongOneBeforeARightOne", "\x1b]133;D;0;x\x1b]133;D;1;ND1;2;0;/;ND1\x07",
			"\x1b]133;D;0;x", []Marker{d(2, 1, "/")}},
		{"HalfAtTheEnd", "a\x1b]133;D;0;ND0", "a\x1b]133;D;0;ND0", nil},
		{"OtherSequences", "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]133;A\x07",
			"\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]133;A\x07", nil},
		{"HugeNumber", "\x1b]133;D;99999999999999999999;ND9", "\x1b]133;D;99999999999999999999;ND9",
			nil},
		{"Unending", "\x1b]133;D;1;ND1;2;0;" + strings.Repeat("x", 2*markerMax),
			"\x1b]133;D;1;ND1;2;0;" + strings.Repeat("x", 2*markerMax), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, markers := feed(c.in)
			require.Equal(t, c.text, text)
			require.Equal(t, c.markers, markers)
			for range 100 { // however it is cut
				var chunks []string
				for rest := c.in; rest != ""; {
					n := 1 + rand.IntN(min(len(rest), 4000))
					chunks, rest = append(chunks, rest[:n]), rest[n:]
				}
				text, markers := feed(chunks...)
				require.Equal(t, c.text, text, "%q", chunks)
				require.Equal(t, c.markers, markers, "%q", chunks)
			}
		})
	}
}

func FuzzScanner(f *testing.F) {
	f.Add("a\x1b]133;C;7;NC7;\x07b", "c\x1b]133;D;7;ND7;1;0;/;ND7\x07d")
	f.Fuzz(func(t *testing.T, a, b string) {
		text, markers := feed(a + b)
		cut, cutMarkers := feed(a, b)
		require.Equal(t, text, cut)
		require.Equal(t, markers, cutMarkers)
		if len(markers) == 0 {
			require.Equal(t, a+b, text)
		}
	})
}
