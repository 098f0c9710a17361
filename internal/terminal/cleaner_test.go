package terminal

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clean returns a Cleaner's text for a stream in pieces, including the unfinished line.
func clean(pieces ...[]byte) []byte {
	var c Cleaner
	var text []byte
	for _, p := range pieces {
		text = c.Append(text, p)
	}
	return c.AppendOpen(c.Flush(text))
}

// cut splits raw into random pieces.
func cut(raw []byte, r *rand.Rand) (pieces [][]byte) {
	for len(raw) > 0 {
		n := min(1+r.IntN(1+r.IntN(40)), len(raw))
		pieces = append(pieces, raw[:n])
		raw = raw[n:]
	}
	return pieces
}

var cleanerTests = []struct{ name, raw, want string }{
	{"nothing", "", ""},
	{"lines", "a\nb\n", "a\nb\n"},
	{"no newline at the end", "a\nb", "a\nb"},
	{"only newlines", "\n\n\n", "\n\n\n"},
	{"spaces", "  a  \n   \n\t\tb \t\n \n", "  a  \n   \n\t\tb \t\n \n"},
	{"UTF-8", "żółw 漢字 e\u0301 👨‍👩‍👧\n", "żółw 漢字 e\u0301 👨‍👩‍👧\n"},
	{"broken UTF-8", "a\xff\xfeb\xc3\n\xe2\x82\n\x80\xf0\x9f\x98", "a�b�\n�\n�"},
	{"8-bit bytes are not controls", "\x9b31m\x90x\x9c\x85\n", "�31m�x�\n"},
	{"C1 controls in UTF-8", "\u009b31mred\u009dx\u0085\u0080y\n", "31mredxy\n"},
	{"directions", "a\u202eb\u202a\u202cc\u2066d\u2069e\u200f\u2060\u2065\n",
		"abcde\u200f\u2060\u2065\n"},
	{"controls inside controls", "\xc2\a\x9bx\xe2\x80\x1b[m\xaey\xe2\u0085\x80\xae\n", "�x�y�\n"},
	{"broken bytes, moved together", "\xe2\x80x\b\xae\n\xc2x\x9b\x1b[2D\x1b[P\n", "��\n��\n"},
	{"NUL, BEL, SO, SI, DEL", "a\x00b\ac\x0ed\x0fe\x7ff\x05\x1c\n", "abcdef\n"},

	{"CR LF", "a\r\nb\r\n\r\n", "a\nb\n\n"},
	{"CR CR LF", "a\r\r\nb\r\r\r\n", "a\nb\n"},
	{"CR at the end", "abc\r", "abc"},
	{"CR overwrites", "abcdef\rXY\n", "XYcdef\n"},
	{"progress", " 10%\r 50%\r100%\r\ndone\n", "100%\ndone\n"},
	{"progress, erased", "long text\r\x1b[Kshort\r\x1b[2Kx\n", "x\n"},
	{"progress, not ended", "1/3\r2/3\r3/3\r", "3/3"},
	{"CR, CR", "ab\r\rc\n", "cb\n"},
	{"CR LF LF", "ab\r\n\n\rc\n", "ab\n\nc\n"},
	{"the next line is a new one", "abc\rX\nde\rf\ng", "Xbc\nfe\ng"},
	{"overwritten by UTF-8", "abcdef\rżó\n", "żócdef\n"},
	{"spaces overwrite", "abc\r   \n", "   \n"},

	{"backspace", "abc\b\bX\n", "aXc\n"},
	{"backspace at column 0", "\b\ba\b\b\b\bX\n", "X\n"},
	{"backspace, space, backspace", "abc\b \b\n", "ab \n"},
	{"overstrike, as man pages have it", "b\bbo\bol\bld_\bX\n", "boldX\n"},
	{"spinner", "|\b/\b-\b\\\bok\n", "ok\n"},

	{"tab", "a\tb\n", "a\tb\n"},
	{"tab moves over text", "0123456789\r\tX\n", "01234567X9\n"},
	{"tab moves over a tab", "a\tb\ra\tc\n", "a\tc\n"},
	{"tab beyond the end", "abc\r\tX\n", "abc\tX\n"},
	{"tab half overwritten", "a\tb\rXYZ\n", "XYZ     b\n"},
	{"tab, before it", "a\tb\rX\n", "X\tb\n"},
	{"tab, backspace", "a\tb\b\bX\n", "a      Xb\n"},
	{"tab after a gap", "a\x1b[10Cb\r\x1b[12C\tX\n", "a          b\tX\n"},

	{"wide, overwritten", "漢字x\rab\n", "ab字x\n"},
	{"wide, left half overwritten", "漢字x\ra\n", "a 字x\n"},
	{"wide, right half overwritten", "漢字x\r\x1b[Ca\n", " a字x\n"},
	{"wide over narrow", "abcd\r漢\n", "漢cd\n"},
	{"wide over half of a wide", "漢字x\ra漢\n", "a漢 x\n"},
	{"backspaces over wide", "漢字\b\bab\n", "漢ab\n"},
	{"mark on an overwritten line", "xyz\re\u0301f\n", "e\u0301fz\n"},
	{"mark goes with its letter", "e\u0301fg\rx\n", "xfg\n"},
	{"mark on a wide rune", "ab漢\u0301c\rx\n", "xb漢\u0301c\n"},
	{"mark at the begin", "\u0301abc\r\x1b[Cx\n", "\u0301xbc\n"},
	{"mark on a gap", "a\x1b[3C\u0301b\x1b[Dx\n", "a   \u0301x\n"},
	{"broken bytes are a cell", "a\xff\xfeb\r\x1b[CX\n", "aXb\n"},

	{"colours", "\x1b[1;31mred\x1b[0m and \x1b[38:2::1:2:3mrgb\x1b[m\n", "red and rgb\n"},
	{"gcc and grep", "\x1b[01m\x1b[Kfile.c:\x1b[m\x1b[K err\n", "file.c: err\n"},
	{"title", "\x1b]0;title\aa\x1b]2;t\x1b\\b\n", "ab\n"},
	{"title of screen", "\x1bktitle\x1b\\a\n", "a\n"},
	{"link", "\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\\n", "link\n"},
	{"DCS, APC, PM, SOS", "a\x1bP1$r0m\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e\n", "abcde\n"},
	{"sixel with newlines", "a\x1bP0;1;0q\"1;1;9;9#0\n~~\n-\x1b\\b\n", "ab\n"},
	{"sixel that is cut", "a\x1bPq#0\n~~\nline 1\nline 2\n", "a\nline 2\n"},
	{"DCS that is none", "a \x1bP b\nline 1\nline 2\n", "a \nline 1\nline 2\n"},
	{"DCS that is only parameters", "a\x1bP1;2\nb\x1bP\nc\n", "a\nb\nc\n"},
	{"DCS that is no image", "a\x1bP1$r0m\nb\x1bP+q544e\nc\n", "a\nb\nc\n"},
	{"UTF-8 in a title", "\x1b]0;żółw 漢\x9c\xff\aa\n", "a\n"},
	{"queries", "\x1b[6n\x1b[c\x1b[>c\x1b[=c\x1b]11;?\a\x1b[?u\x1bZa\n", "a\n"},
	{"modes", "\x1b[?25l\x1b[?2004h\x1b[>4;2m\x1b=\x1b>a\x1b[?25h\x1b[4 q\x1b[!p\n", "a\n"},
	{"character sets", "\x1b(0\x1b)B\x1b%G\x1b#8a\n", "a\n"},

	{"unterminated title", "\x1b]0;title\nnext\n", "\nnext\n"},
	{"unterminated APC, PM, SOS", "\x1b_x\na\x1b^y\nb\x1bXz\nc\n", "\na\nb\nc\n"},
	{"title ended by a sequence", "\x1b]0;title\x1b[31ma\n", "a\n"},
	{"title cancelled", "\x1b]0;t\x18a\x1b]0;t\x1ab\n", "ab\n"},
	{"APC ended by BEL", "\x1b_x\aa\n", "a\n"},
	{"DCS ended by BEL, cancelled", "\x1bPx\aa\x1bPx\x18b\x1bPx\x1ac\x1bPx\x1b[md\n", "abcd\n"},
	{"CSI cancelled", "\x1b[3\x181ma\x1b[3\x1ab\n", "1mab\n"},
	{"CSI restarted", "\x1b[3\x1b[31ma\n", "a\n"},
	{"CSI with a control in it", "ab\x1b[\r1Cx\x1b[\n31mc\n", "ax\nc\n"},
	{"CSI with DEL in it", "\x1b[3\x7f1ma\n", "a\n"},
	{"CSI with a letter that is no ASCII", "\x1b[3ża\n", "ża\n"},
	{"CSI, malformed", "\x1b[3?1ma\x1b[1 2mb\x1b[3<mc\x1b[?<hd\n", "abcd\n"},
	{"CSI with too many parameters", "\x1b[" + strings.Repeat("1;", 100) + "ma\n", "a\n"},
	{"ESC in the middle of a rune", "\xe2\x82\x1b[m\xac\n", "�\n"},
	{"ESC with a letter that is no ASCII", "\x1bża\n", "ża\n"},
	{"ESC ESC", "\x1b\x1b[1ma\n", "a\n"},
	{"unfinished sequence", "a\x1b[31", "a"},
	{"unfinished title", "a\x1b]0;x", "a"},
	{"unfinished rune", "a\xe2\x82", "a�"},
	{"unfinished rune on an edited line", "abcd\rX\xe2\x82", "X�cd"},

	{"CUF", "a\x1b[3Cb\x1b[Cc\n", "a   b c\n"},
	{"CUF, nothing after it", "a\x1b[3C\n", "a\n"},
	{"CUB", "abcd\x1b[2DX\x1b[99DY\n", "YbXd\n"},
	{"CHA, HPA", "abcd\x1b[2GX\x1b[6`Y\x1b[GZ\n", "ZXcd Y\n"},
	{"CHT, CBT", "abc\x1b[2IX\x1b[ZY\x1b[2ZZ\n", "abc     Z       Y\n"},
	{"EL 0", "abcdef\x1b[3D\x1b[Kx\x1b[0K\n", "abcx\n"},
	{"EL 1", "abcdef\x1b[4D\x1b[1K\n", "   def\n"},
	{"EL 1, all", "abc\x1b[1K\x1b[1Gx\n", "x\n"},
	{"EL 2 keeps the column", "abc\x1b[2Kd\n", "   d\n"},
	{"EL 2, CR", "abc\x1b[2K\rd\n", "d\n"},
	{"EL 2, nothing after it", "abc\x1b[2K\n", "\n"},
	{"EL 3 is none", "abc\r\x1b[3K\n", "abc\n"},
	{"EL of half a wide rune", "漢字\x1b[3D\x1b[K\n", "\n"},
	{"ED 0", "abcdef\r\x1b[2C\x1b[J\nx\n", "ab\nx\n"},
	{"ECH", "abcdef\r\x1b[2X\x1b[4C\x1b[9X\n", "  cd\n"},
	{"DCH", "abcdef\r\x1b[2P\x1b[2C\x1b[99P\n", "cd\n"},
	{"DCH of a tab", "abc\tx\r\x1b[P\n", "bc     x\n"},
	{"ICH", "abc\r\x1b[C\x1b[2@X\n", "aX bc\n"},
	{"ICH at the end", "abc\x1b[2@X\n", "abcX\n"},
	{"REP", "ab\x1b[3bc\n", "abbbbc\n"},
	{"REP of a wide rune", "漢\x1b[2bc\n", "漢漢漢c\n"},
	{"REP of nothing", "\x1b[3b\t\x1b[3bc\n", "\tc\n"},
	{"DECSC, DECRC", "ab\x1b7cd\x1b8X\n", "abXd\n"},
	{"CSI s, CSI u", "ab\x1b[scd\x1b[uX\n", "abXd\n"},
	{"DECRC from another line", "ab\x1b7cd\nef\x1b8X\n", "abXd\nef"},

	{"cursor up", "one\x1b[Atwo\n", "   two\none"},
	{"cursor up, rewritten", "one\ntwo\n\x1b[2A\x1b[Kuno\n", "uno\ntwo\n"},
	{"cursor down", "one\x1b[2Btwo\x1b[Ethree\x1b[Ffour\n", "one\nfourwo\nthree"},
	{"cursor to", "one\x1b[5;5Htwo\x1b[3;1fthree\x1b[7dfour\n", "three\n    two\n     four\none"},
	{"IND, NEL, RI, VT, FF", "a\x1bDb\x1bEc\x1bMd\ve\ff\n", "a\n d\ne\nf\n"},
	{"clear", "\x1b[H\x1b[2J\x1b[3Ja\n", "a\n"},
	{"clear, home and below", "\x1b[H\x1b[Ja\n", "a\n"},
	{"clear after text", "text\x1b[H\x1b[2Ja\n", "text\na\n"},
	{"clear after spaces that were erased", "text\r\x1b[K\x1b[5C\x1b[Ha\n", "a\n"},
	{"clear twice", "text\n\x1b[H\x1b[2Jone\ntwo\n\x1b[H\x1b[2Jthree\n", "text\nthree\n"},
	{"RIS", "a\x1bcb\n", "a\nb\n"},
	{"scrolling region", "a\x1b[1;10rb\n", "b\na"},

	{"alternate screen", "a\n\x1b[?1049hvi\nscreen\x1b[2;2H~\x1b[?1049lb\n", "a\nb\n"},
	{"alternate screen, 47 and 1047", "\x1b[?47hx\x1b[?47la\x1b[?1047hx\x1b[?1047lb\n", "ab\n"},
	{"alternate screen among modes", "\x1b[?1;1049;25hx\r\n\x1b[?1;1049la\n", "a\n"},
	{"alternate screen on a line", "ab\x1b[?1049hx\n\r\b\ty\x1b[?1049lc\n", "abc\n"},
	{"alternate screen, not left", "ab\n\x1b[?1049h\x1b[Hmenu\x1b[2;2Hkilled\nrc 137",
		"ab\nkilled\nrc 137"},
	{"alternate screen, not left, nothing drawn", "ab\x1b[?1049hTraceback\nboom\n",
		"ab\nTraceback\nboom\n"},
	{"alternate screen, not left, nothing behind", "ab\x1b[?1049hmenu\x1b[H\x1b[J", "ab"},
	{"alternate screen, not left, on a line", "\x1b[?1049h\x1b[Hmenu 9%\rrc 1\x1b[K", "rc 1"},
	{"alternate screen, entered again", "\x1b[?1049hmenu\x1b[2;2Hrc " +
		"137\nx\x1b[?1049hless\x1b[?1049lend\n", "rc 137\nxend\n"},
	{"alternate screen, scrolled away", "\x1b[?1049hmenu\x1b[H" +
		strings.Repeat("make\n", maxUndrawn/5+1) + "\x1b[Hend\n",
		strings.Repeat("make\n", maxUndrawn/5+1) + "end\n"},
	{"alternate screen, left by RIS", "ab\x1b[?1049hx\ny\x1bcc", "ab\nc"},
	{"a request for its mode", "\x1b[?1049$pa\n", "a\n"},

	{"parameters are clamped", "a\x1b[4000000000Cb\x1b[99999999999999999999Gc\n",
		"a" + strings.Repeat(" ", maxGap-1) + "bc\n"},
	{"a negative one is none", "a\x1b[-5Pb\n", "ab\n"},
	{"apt's progress bar", "\x1b7\x1b[24;0f\x1b[42mProgress: [ 50%]\x1b[49m\x1b8Unpacking\n",
		"Unpacking\nProgress: [ 50%]"},
}

func TestCleaner(t *testing.T) {
	for _, test := range cleanerTests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, string(clean([]byte(test.raw))))
			assert.Equal(t, test.want, string(clean(slices.Collect(
				slices.Chunk([]byte(test.raw), 1))...)), "byte by byte")
		})
	}
}

func TestCleanerKeepsWhatIsNotFinal(t *testing.T) {
	var c Cleaner
	c.SetSize(1, 80)
	step := func(raw, final, line string) {
		t.Helper()
		assert.Equal(t, "x"+final, string(c.Append([]byte("x"), []byte(raw))), "final")
		assert.Equal(t, line, string(c.Line()), "line")
	}
	step("one", "", "one")
	step(" two\r", "", "one two")
	step("\nthree\xe2", "one two\n", "three")
	step("\x82", "", "three")
	step("\xac", "", "three€")
	step("\xf0\x9f", "", "three€")
	step("\x1b[3", "", "three€�")
	step("1m!\rT", "", "Three€�!")
	step("\x1b[?1049hscreen\n", "", "Three€�!")
	step("\x1b[?1049l\xe2", "", "Three€�!")

	assert.Empty(t, c.Flush(nil))
	assert.Equal(t, "T�ree€�!", string(c.Line()))
	step("\x82\n", "T�ree€�!\n", "")

	step("lost\x1b[?1049h\x1b]0;", "", "lost")
	c.Reset()
	step("new\n", "new\n", "")
}

func TestCleanerPassesPlainText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", " ", "\n", "\t", "ż", "漢", "\u0301", "😀", "\x80", "\xff", "\xe2\x82",
		"word", "  ", "\n\n"}
	for range 500 {
		var text []byte
		for range r.IntN(200) {
			text = append(text, letters[r.IntN(len(letters))]...)
		}
		want := strings.ToValidUTF8(string(text), "�")
		require.Equal(t, want, string(clean(text)))
		require.Equal(t, want, string(clean(cut(text, r)...)), "in pieces")
	}
}

func TestCleanerDoesNotMindPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		raw := randomOutput(r, 30)
		whole := clean(raw)
		require.Equal(t, string(whole), string(clean(cut(raw, r)...)), "%q", raw)
	}
}

// randomOutput returns n random pieces of output of kinds that affect each other.
func randomOutput(r *rand.Rand, n int) (raw []byte) {
	kinds := []string{
		"\r", "\n", "\r\n", "\b", "\t", "abc", "word and word", "漢字", "e\u0301", "\u0301", "\xff",
		"\xe2\x82", "\xf0\x9f\x98", "\x80",
		"\x1b[31m", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[3C", "\x1b[2D", "\x1b[5G", "\x1b[2P",
		"\x1b[2@", "\x1b[3X", "\x1b[4b",
		"\x1b7", "\x1b8", "\x1b[I", "\x1b[Z", "\x1b[A", "\x1b[H", "\x1b[J", "\x1b[2J", "\x1b]0;t",
		"\a", "\x1b\\", "\x1bP", "\x1b[",
		"\x1b", "\x18", "\x00", "\x7f", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?47h", "\x1b[?47l",
		"\x1bc", "\x1bM", "\v",
		"\x1b(0", "\x1b(B", "\x0e", "\x0f", "\x1b[4h", "\x1b[4l", "\x1b[?7l", "\x1b[?7h",
		"\x1b[?6h", "\x1b[?6l", "\x1b[3;9r", "\x1b[r",
		"\x1b[5;70H", "\x1b[24;80H", "\x1b[2L", "\x1b[2M", "\x1b[2S", "\x1b[2T", "\x1b[1J", "\x1bH",
		"\x1b[g", "\x1b[3g", "\x1b#8",
		"\x1b[2A", "\x1b[B", "\x1b[E", "\x1b[F", "\x1b[9d", "\x1b[s", "\x1b[u", "\x1bD", "\x1b[0J",
		strings.Repeat("long ", 20),
		"\u009b", "\u202e", "\xc2", "\x9b", "\xae", "\x1bPq", "\x1bP1;", "\x1b[-5P",
		"\x1b[4000000000I", "\x1b[;0H", "\U0010fffd", "\U0010ffff",
	}
	for range n {
		raw = append(raw, kinds[r.IntN(len(kinds))]...)
	}
	return raw
}

func TestQueries(t *testing.T) {
	var c Cleaner
	c.Append(nil, []byte("a\x1b[6nb\x1b[5"))
	require.Equal(t, []Query{{QueryCursor, 5}}, c.Queries())
	c.Append(nil, []byte("n\x1b[c\x1b[0c\x1b[>c\x1b[?6n\x1b[7n"))
	require.Equal(t, []Query{{QueryStatus, 1}, {QueryAttributes, 4}, {QueryAttributes, 8}},
		c.Queries())
	c.Append(nil, []byte("\xe2\x82"))
	require.Empty(t, c.Queries())
	c.Append(nil, []byte("\xac\x1b[6n"))
	require.Equal(t, []Query{{QueryCursor, 5}}, c.Queries())
	c.Append(nil, bytes.Repeat([]byte("\x1b[6n"), 1000))
	require.Len(t, c.Queries(), maxQueries)
}

func TestFullScreen(t *testing.T) {
	for raw, want := range map[string][2]bool{ // before and after Flush
		"":                               {false, false},
		"\x1b[?1049h\x1b[Hmenu":          {true, false},
		"\x1b[?1049hmenu\x1b[H":          {true, true},
		"\x1b[?1049hmenu\x1b[Hx\n":       {true, true},
		"\x1b[?1049hmenu\x1b[H\x1b[?47l": {false, false},
		"\x1b[?1049hmenu\x1b[H\x1bc":     {false, false},
	} {
		var c Cleaner
		c.Append(nil, []byte(raw))
		before := c.FullScreen()
		c.Flush(nil)
		require.Equal(t, want, [2]bool{before, c.FullScreen()}, "%q", raw)
	}
}
