package terminal

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLongLine(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, unit := range []string{"0123456789abcde ", "漢字ż", "\t", "e\u0301x", "—\u200f"} {
		long := []byte(strings.Repeat(unit, 5*maxLine/len(unit)))
		edited := append([]byte("abX\bc"), long...)
		require.True(t, bytes.Equal(long, clean(long)), "%q", unit)
		require.True(t, bytes.Equal(append([]byte("abc"), long...), clean(edited)),
			"%q on an edited line", unit)

		for _, raw := range [][]byte{
			append(bytes.Clone(long), "\rREWRITTEN\x1b7\x1b[9000CEND\x1b8\x1b[Pq\nnext"...),
			append(bytes.Clone(edited), "\rREWRITTEN\x1b[60000@\x1b[60000bEND\nnext"...),
		} {
			var pieces [][]byte
			for rest := raw; len(rest) > 0; {
				n := min(1+r.IntN(10000), len(rest))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			whole := clean(raw)
			require.Contains(t, string(whole), "REWRITTEN")
			require.True(t, bytes.Equal(whole, clean(pieces...)), "%q in pieces", unit)
		}
	}
}

func TestLongLineIsGivenOut(t *testing.T) {
	for _, begin := range []string{"", "x\b"} {
		var c Cleaner
		var out []byte
		out = c.Append(out, []byte(begin+strings.Repeat("a", maxLine-1)))
		assert.Empty(t, out)
		out = c.Append(out, []byte("b"))
		assert.Len(t, out, maxLine/2)
		assert.Len(t, c.Line(), maxLine/2)
		out = c.AppendOpen(c.Append(out, []byte("\rX\n")))
		assert.Equal(t, strings.Repeat("a", maxLine/2)+"X"+strings.Repeat("a", maxLine/2-2)+"b\n",
			string(out))
	}
}

func TestFlushAtTheLimit(t *testing.T) {
	var c Cleaner
	out := c.Append(nil, []byte(strings.Repeat("a", maxLine-1)+"\xf0\x9f\x98"))
	out = c.Append(c.Flush(out), []byte("b"))
	assert.Equal(t, strings.Repeat("a", maxLine-1)+"�b", string(c.AppendOpen(out)))
}

func TestUnterminatedStringEnds(t *testing.T) {
	for _, begin := range []string{"\x1bP", "\x1b]", "\x1b_"} {
		var c Cleaner
		piece := bytes.Repeat([]byte{'x'}, 1<<20)
		out := c.Append(nil, []byte(begin))
		for range maxString / len(piece) {
			out = c.Append(out, piece)
		}
		assert.Empty(t, out)
		out = c.AppendOpen(c.Append(out, []byte("back\n")))
		assert.Equal(t, "back\n", string(out))
	}
}

func TestCleanerMemory(t *testing.T) {
	inputs := map[string]string{
		"progress bar":     "\r[=====>    ] 50% e\u0301 漢字 \x1b[K",
		"plain":            "text without an end ",
		"edited":           "\btext without an end ",
		"tabs":             "\b\t\t\t\t\t\t\t\t",
		"marks":            "\u0301\u0301\u0301\u0301\u0301",
		"marks, edited":    "\ba\u0301\u0301\u0301\u0301\u0301",
		"inserted":         "\r\x1b[4000@" + strings.Repeat("x", 200),
		"far away":         "x\x1b[4000000000C",
		"repeated":         strings.Repeat("x", 200) + "\x1b[4000000000b",
		"parameters":       "\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19",
		"endless CSI":      "11111111111111;;;;;;;;;",
		"saved":            "a\x1b7\x1b8\b",
		"rows":             "\x1b[5;70Htext\x1b[9999L\x1b[2J\n",
		"long lines":       strings.Repeat("x", 500) + "\n",
		"alternate screen": "\x1b[?1049hwithout\tan end\r",
	}
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var c Cleaner
			out := make([]byte, 0, 1<<20)
			piece := []byte(strings.Repeat(input, 1000/len(input)+1))
			if name == "endless CSI" {
				out = c.Append(out, []byte("\x1b["))
			}
			for range 200 {
				out = c.Append(out[:0], piece)
				c.Line()
			}
			held := cap(out)
			out = nil
			runtime.GC()
			runtime.ReadMemStats(&after)
			assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(16<<20))
			assert.LessOrEqual(t, held, 64<<20)
			runtime.KeepAlive(&c)
		})
	}
}

// TestUndrawnPieces checks that text that makes the Cleaner leave the alternate screen is the same
// in whatever pieces it comes.
func TestUndrawnPieces(t *testing.T) {
	lines := strings.Repeat("make\n", maxUndrawn/5+3)
	raw := []byte("\x1b[?1049hmenu\x1b[H" + lines + "\x1b[Hend\n")
	whole := string(clean(raw))
	line := bytes.Index(raw, []byte("make")) + (maxUndrawn/5+1)*5 // where it leaves
	for at := line - 2; at < line+3; at++ {
		require.Equal(t, whole, string(clean(raw[:at], raw[at:])), "cut at %d", at)
	}
}
