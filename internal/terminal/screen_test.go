package terminal

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRender(t *testing.T) {
	tests := []struct {
		name, raw  string
		rows, cols int
		want       string // the first lines; the others are empty
		row, col   int
	}{
		{"nothing", "", 2, 5, "", 0, 0},
		{"lines", "a\nb\n", 4, 5, "a\nb", 2, 0},
		{"CR LF", "a\r\nb\r\n", 4, 5, "a\nb", 2, 0},
		{"no newline at the end", "a\nbc", 4, 5, "a\nbc", 1, 2},
		{"leading spaces, no trailing ones", "  a  \n", 2, 9, "  a", 1, 0},
		{"scrolls", "1\n2\n3\n4", 2, 5, "3\n4", 1, 1},
		{"wraps", "abcdefg", 3, 5, "abcde\nfg", 1, 2},
		{"wraps late", "abcde", 3, 5, "abcde", 0, 4},
		{"wraps late, newline", "abcde\nf", 3, 5, "abcde\nf", 1, 1},
		{"no wrapping", "\x1b[?7labcdefg", 3, 5, "abcdg", 0, 4},
		{"tabs", "a\tb", 1, 20, "a       b", 0, 9},
		{"progress", "10%\r50%\r", 1, 9, "50%", 0, 0},
		{"addressing", "\x1b[2;3Hx\x1b[Hy\x1b[3;1fz\x1b[4Gw\x1b[1dv", 3, 9, "y   v\n  x\nz  w", 0,
			5},
		{"VT and FF go straight down", "a\vb\fc", 3, 9, "a\n b\n  c", 2, 3},

		{"size of nothing", "a", 0, -3, "a", 0, 0},
		{"one cell", "a漢\nb\tc\x1b[5;5H\x1b[2L\x1b[9P\x1b[9@d", 1, 1, "d", 0, 0},

		{"newline on the alternate screen", "\x1b[?1049h\x1b[Ha\nb", 2, 5, "a\n b", 1, 2},
		{"the normal screen comes back", "ab\x1b[?1049h\x1b[2;2Hvi\x1b[?1049lc", 2, 5, "abc", 0, 3},
		{"the alternate screen is new each time", "\x1b[?1049h\x1b[Hold\x1b[?1049l\x1b[?1049hx", 2,
			5, "x", 0, 1},
		{"left without having been entered", "x\x1b[?1049hy\x1b[?1049l\x1b[?1049lz", 2, 5, "xz", 0,
			2},
		{"left before it is entered", "half of vi\x1b[?1049l$ ls\n", 2, 9, "$ ls", 1, 0},
		{"newline, left before it is entered", "half\nof vi", 3, 9, "half\nof vi", 1, 5},
		{"entered twice", "x\x1b[?1049hy\x1b[?1049hz\x1b[?1049lw", 2, 5, "xw", 0, 2},
		{"47 and 1047", "x\x1b[?47hy\x1b[?47l\x1b[?1047hz\x1b[?1047l", 2, 5, "x", 0, 3},
		{"RIS on the alternate screen", "x\x1b[?1049hy\x1bcz\n\nw", 3, 5, "z\n\nw", 2, 1},

		{"wide", "漢字a", 1, 9, "漢字a", 0, 5},
		{"wide does not fit", "abc漢d", 2, 4, "abc\n漢d", 1, 3},
		{"wide at the very end", "ab漢d", 2, 4, "ab漢\nd", 1, 1},
		{"wide, left half overwritten", "漢字\rx", 1, 9, "x 字", 0, 1},
		{"wide, right half overwritten", "漢字\x1b[4Gx", 1, 9, "漢 x", 0, 4},
		{"wide, right half erased", "漢字\x1b[4G\x1b[K", 1, 9, "漢", 0, 3},
		{"wide, half deleted", "a漢字\x1b[2G\x1b[P", 1, 9, "a 字", 0, 1},
		{"marks", "e\u0301\u0302x\u0301", 1, 9, "e\u0301\u0302x\u0301", 0, 2},
		{"marks on wide", "漢\u0301a", 1, 9, "漢\u0301a", 0, 3},
		{"mark overwritten", "e\u0301a\rx", 1, 9, "xa", 0, 1},
		{"marks on nothing", "\u0301\u0302a", 1, 9, "a", 0, 1},
		{"emoji of several runes", "👩\u200d👧\ufe0f!", 1, 9, "👩\u200d👧\ufe0f!", 0, 5},
		{"C1 controls in UTF-8", "a\u0085\u009bb", 1, 9, "ab", 0, 2},
		{"private use", "a\U00100000\U0010ffff\U0010fffdb\ue0b0", 1, 9,
			"a\U00100000\U0010ffff\U0010fffdb\ue0b0", 0, 6},
		{"broken UTF-8", "a\xffb\xe2\x82", 1, 9, "a\ufffdb\ufffd\ufffd", 0, 5},
		{"half a rune at the begin", "\x82\xac€", 1, 9, "€", 0, 1},

		{"line drawing", "\x1b(0lqk\x1b(Bq", 1, 9, "┌─┐q", 0, 4},
		{"line drawing by SO and SI", "q\x1b)0\x0eq\x0fq", 1, 9, "q─q", 0, 3},
		{"other character sets", "\x1b(0\x1b(Aq\x1b*0q\x1b%Gq", 1, 9, "qqq", 0, 3},
		{"insert mode", "abc\r\x1b[4hXY漢\x1b[4lZ", 1, 9, "XY漢Zbc", 0, 5},
		{"ICH, DCH, ECH", "abcdef\r\x1b[2@\x1b[3C\x1b[P\x1b[2X", 1, 9, "  a  ef", 0, 3},
		{"REP", "ab\x1b[3bc漢\x1b[1b", 1, 12, "abbbbc漢漢", 0, 10},
		{"REP of nothing", "\x1b[3ba", 1, 12, "a", 0, 1},
		{"IL, DL", "1\n2\n3\x1b[1;1H\x1b[L\x1b[3;1H\x1b[M", 4, 5, "\n1\n3", 2, 0},
		{"SU, SD", "1\n2\n3\x1b[2S\x1b[T", 3, 5, "\n3", 2, 1},
		{"scrolling region", "1\n2\n3\n4\x1b[2;3r\x1b[3;1H\nx", 4, 5, "1\n3\nx\n4", 2, 1},
		{"scrolling region, senseless", "1\n2\x1b[3;2r\x1b[9;9rx", 4, 5, "1\n2x", 1, 2},
		{"RI", "1\n2\x1b[H\x1bMx", 3, 5, "x\n1\n2", 0, 1},
		{"IND, NEL", "a\x1bDb\x1bEc", 3, 5, "a\n b\nc", 2, 1},
		{"origin mode", "\x1b[2;3r\x1b[?6h\x1b[1;1Hx\x1b[?6l\x1b[1;1Hy", 3, 5, "y\nx", 0, 1},
		{"save and restore", "ab\x1b7\x1b[3;3Hc\x1b8d\x1b[s\x1b[H\x1b[ue", 3, 5, "abde\n\n  c", 0,
			4},
		{"ED 0", "abc\ndef\nghi\x1b[2;2H\x1b[J", 3, 5, "abc\nd", 1, 1},
		{"ED 1", "abc\ndef\nghi\x1b[2;2H\x1b[1J", 3, 5, "\n  f\nghi", 1, 1},
		{"ED 1 further down", "abc\ndef\nghi\x1b[3;2H\x1b[1J", 3, 5, "\n\n  i", 2, 1},
		{"ED 2", "abc\x1b[2Jd", 2, 5, "   d", 0, 4},
		{"ED 3", "abc\x1b[3Jd", 2, 5, "abcd", 0, 4},
		{"EL", "abc\n\x1b[1;2H\x1b[1K\x1b[2;1Hdef\x1b[2;2H\x1b[K", 2, 5, "  c\nd", 1, 1},
		{"tab stops", "\x1b[3g\x1b[4G\x1bH\r\tx\x1b[Zy", 1, 9, "   y", 0, 4},
		{"DECALN", "\x1b#8", 2, 3, "EEE\nEEE", 0, 0},
		{"RIS", "abcdef\nghi\x1b[?7l\x1b(0\x1b[4h\x1bcq", 2, 9, "q", 0, 1},

		{"C1 controls and directions", "a\u009b1mb\u202ec\u2066\x9b\u0301", 1, 9, "a1mbc�\u0301", 0,
			6},
		{"colours", "\x1b[1;31ma\x1b[38;2;1;2;3mb\x1b[4:3mc\x1b[m", 1, 9, "abc", 0, 3},
		{"strings", "a\x1b]0;t\ab\x1bP1$r\x1b\\c\x1b_G\x1b\\d\x1bktitle\x1b\\e", 1, 9, "abcde", 0,
			5},
		{"queries", "\x1b[6n\x1b[5n\x1b[c\x1b[>c\x1b]11;?\a\x1b]4;1;?\a\x1b[?6n\x1bZa", 1, 9, "a",
			0, 1},
		{"private sequences that look like others",
			"ab\x1b[?1s\x1b[>1u\x1b[?J\x1b[>4;2m\x1b[=1;1H\x1b[2 @c", 1, 9, "abc", 0, 3},
		{"modes", "\x1b[?25l\x1b[?2004h\x1b[?1h\x1b=\x1b[20h\x1b[?3ha\vb", 2, 9, "a\n b", 1, 2},
		{"unfinished", "a\x1b[3", 1, 9, "a", 0, 1},

		{"vt10x would panic", "abc\x1b[-5P\x1b[-1@\x1b[-3X\x1b[-2I\x1b[0P", 1, 9, "abc", 0, 3},
		{"vt10x would hang",
			"a\x1b[4000000000I\x1b[4000000000Z\x1b[4000000000b\x1b[99999999999999999999Ab", 1, 9,
			"aaaaaaaab", 0, 8},
		{"large parameters",
			"a\x1b[4000000000;4000000000H\x1b[4000000000L\x1b[4000000000P\x1b[4000000000@b", 2, 5,
			"a\n    b", 1, 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			lines, row, col := Render([]byte(test.raw), test.rows, test.cols)
			assert.Len(t, lines, max(test.rows, 1))
			assert.Equal(t, test.want, strings.TrimRight(strings.Join(lines, "\n"), "\n"))
			assert.Equal(t, []int{test.row, test.col}, []int{row, col}, "cursor")
		})
	}
}

func TestRenderManyClusters(t *testing.T) {
	var raw []byte
	for r := rune(0x4e00); r < 0x4e00+20000; r++ {
		for _, mark := range []rune{0x300, 0x301, 0x302, 0x303} {
			raw = append(raw, string([]rune{r, mark})...)
		}
	}
	lines, _, _ := Render(append(raw, "\nthe end e\u0301"...), 2, 80)
	assert.Contains(t, lines[1], "the end")
}

// checkRender renders raw and checks what must be true of every screen.
func checkRender(t *testing.T, raw []byte, rows, cols int) {
	t.Helper()
	begin := time.Now()
	lines, row, col := Render(raw, rows, cols)
	require.Less(t, time.Since(begin), 10*time.Second, "%q", raw)
	require.Len(t, lines, rows)
	require.True(t, 0 <= row && row < rows && 0 <= col && col < cols, "cursor %d, %d of %q", row,
		col, raw)
	for _, line := range lines {
		require.Equal(t, strings.TrimRight(line, " "), line, "%q", raw)
		width := 0
		for _, r := range line {
			require.True(t, r >= ' ' && r != del && !isControlRune(r), "%q of %q", line, raw)
			width += runeWidth(r)
		}
		require.LessOrEqual(t, width, cols, "%q of %q", line, raw)
	}
}

func TestRenderAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		checkRender(t, randomOutput(r, 50), 1+r.IntN(30), 1+r.IntN(100))
	}
}
