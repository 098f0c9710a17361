package shellbox

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const nonce = "N0NCE"

// feed gives the chunks to a scanner and returns the text and the markers that come out.
func feed(chunks ...string) (text string, markers []marker) {
	s := scanner{nonce: nonce}
	for _, chunk := range chunks {
		for rest := []byte(chunk); len(rest) > 0; {
			var t []byte
			var m *marker
			t, m, rest = s.next(rest)
			text += string(t)
			if m != nil {
				markers = append(markers, *m)
			}
		}
	}
	return text + string(s.flush()), markers
}

func TestScanner(t *testing.T) {
	d := func(status, seq, pid int, cwd string) marker {
		return marker{kind: 'D', status: status, seq: seq, pid: pid, cwd: cwd}
	}
	for _, c := range []struct {
		name, in, text string
		markers        []marker
	}{
		{"None", "plain\ntext", "plain\ntext", nil},
		{"Begin", "echo\n\x1b]133;C;7;;N0NCE\x07out", "echo\nout", []marker{{kind: 'C', seq: 7}}},
		{"BeginWithBackground", "\x1b]133;C;7;1234;N0NCE\x07", "", []marker{{kind: 'C', seq: 7, background: 1234}}},
		{"End", "out\x1b]133;D;130;8;99;/a b;N0NCE\x07", "out", []marker{d(130, 8, 99, "/a b")}},
		{"AnyDirectory", "\x1b]133;D;0;1;2;/a\n\x07\x1b]133;;x;N0NCE\x07", "", []marker{d(0, 1, 2, "/a\n\x07\x1b]133;;x")}},
		{"WrongNonce", "\x1b]133;C;7;;OTHER\x07x", "\x1b]133;C;7;;OTHER\x07x", nil},
		{"ThePromptsText", "\x1b]133;D;$?;$_ss_q;$$;$PWD;N0NCE\x07", "\x1b]133;D;$?;$_ss_q;$$;$PWD;N0NCE\x07", nil},
		{"HalfBeforeWhole", "\x1b]133;D;0;\x1b]133;D;1;2;3;/;N0NCE\x07", "\x1b]133;D;0;", []marker{d(1, 2, 3, "/")}},
		{"HalfAtTheEnd", "a\x1b]133;D;0;1", "a\x1b]133;D;0;1", nil},
		{"OtherSequences", "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]133;A\x07", "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]133;A\x07", nil},
		{"HugeNumber", "\x1b]133;D;99999999999999999999;1;2;/;N0NCE\x07", "\x1b]133;D;99999999999999999999;1;2;/;N0NCE\x07", nil},
		{"Unending", "\x1b]133;D;0;1;2;" + strings.Repeat("x", 2*markerMax), "\x1b]133;D;0;1;2;" + strings.Repeat("x", 2*markerMax), nil},
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
	f.Add("a\x1b]133;C;7;;N0NCE\x07b", "c\x1b]133;D;0;7;1;/;N0NCE\x07d")
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
