package terminal

import (
	"strconv"
	"unicode/utf8"

	"github.com/hinshun/vt10x"
)

// A filter stands before a vt10x terminal and protects it from its input: vt10x panics at a
// negative parameter, a large one keeps it busy for minutes, it stops at a broken rune, and it
// mistakes private sequences for others with the same last byte. The filter passes text, and the
// sequences that vt10x knows, with sane parameters. It drops all others, and colours, which nobody
// sees here.
//
// The filter also does what vt10x lacks or does wrong: wide runes, combining marks, insert mode,
// REP, SO and SI, RIS, ED 1 on the second row, and a switch to the screen that is on already.
type filter struct {
	vt         vt10x.Terminal
	rows, cols int
	seq        sequence
	buf        []byte // passed, but not yet written to vt

	alt      bool    // the alternate screen is on
	insert   bool    // insert mode is on
	charsets [2]byte // G0 and G1; '0' is line drawing
	shift    int     // which of them is in use

	last     glyph // for REP
	clusters []string
	numbers  map[string]rune
}

// A glyph is a character as vt10x knows it, and its width in columns. In vt10x each rune takes one
// cell. So a wide rune is followed by secondHalf, and for a character of several runes a number
// stands in plane 16 of Unicode: firstCluster plus its index in clusters. Runes that really are in
// that plane, which is for private use, get such numbers too.
type glyph struct {
	r     rune
	width int
}

const (
	firstPrintable = 0xa0 // the first beyond ASCII: C1 controls come before it
	firstCluster   = 0x100000
	secondHalf     = utf8.MaxRune

	// Bits of vt10x's Cursor.State, which does not export their names.
	wrapNext   = 1 << 1 // the last column has been written to, and the next character wraps
	originMode = 1 << 2 // rows count from the top of the scrolling region
)

// write filters raw. vt has what was passed after the next flush.
func (f *filter) write(raw []byte) {
	for len(raw) > 0 {
		if f.seq.open() {
			raw = raw[f.sequence(raw):]
			continue
		}
		n := textLen(raw)
		f.text(raw[:n])
		if n < len(raw) {
			f.control(raw[n])
			n++
		}
		raw = raw[n:]
	}
}

func (f *filter) flush() {
	f.vt.Write(f.buf) // never fails, as it gets whole runes
	f.buf = f.buf[:0]
}

// cursor returns vt's cursor after all that was passed.
func (f *filter) cursor() vt10x.Cursor {
	f.flush()
	return f.vt.Cursor()
}

func (f *filter) pass(s string) { f.buf = append(f.buf, s...) }

// passCSI passes a control sequence with up to two parameters.
func (f *filter) passCSI(final byte, params ...int) {
	f.pass("\x1b[")
	for i, p := range params {
		if i > 0 {
			f.pass(";")
		}
		f.buf = strconv.AppendInt(f.buf, int64(min(p, max(f.rows, f.cols))), 10)
	}
	f.buf = append(f.buf, final)
}

// text passes text, with "\n" and "\t" in it.
func (f *filter) text(s []byte) {
	for len(s) > 0 {
		n := asciiLen(s)
		if n < len(s) && s[n] >= utf8.RuneSelf {
			n-- // the last character may have marks
		}
		switch {
		case s[0] == '\n' || s[0] == '\t':
			f.control(s[0])
			n = 1
		case n > 0 && !f.insert:
			f.buf = append(f.buf, s[:n]...)
			f.last = glyph{rune(s[n-1]), 1}
		default:
			n = clusterLen(s)
			f.put(f.glyph(s[:n]))
		}
		s = s[n:]
	}
}

// clusterLen returns the length of the first character of s: a rune, and the marks on it.
func clusterLen(s []byte) int {
	_, n := utf8.DecodeRune(s)
	for n < min(len(s), maxMarks) && s[n] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(s[n:])
		if runeWidth(r) > 0 || isControlRune(r) {
			break
		}
		n += size
	}
	return n
}

// glyph returns the glyph of a character. The width is 0 if there is nothing to be seen.
func (f *filter) glyph(s []byte) glyph {
	r, size := utf8.DecodeRune(s)
	g := glyph{r, runeWidth(r)}
	if len(s) == size && r < firstCluster {
		return g
	}
	cluster := string(r) + string(s[size:]) // s may begin with a byte that is not UTF-8
	number, ok := f.numbers[cluster]
	if !ok {
		number = firstCluster + rune(len(f.clusters))
		if number == secondHalf { // no room for more
			return glyph{utf8.RuneError, 1}
		}
		if f.numbers == nil {
			f.numbers = make(map[string]rune)
		}
		f.numbers[cluster] = number
		f.clusters = append(f.clusters, cluster)
	}
	g.r = number
	return g
}

// character is the reverse of glyph: the text of a rune on vt.
func (f *filter) character(r rune) string {
	if r >= firstCluster && r != secondHalf {
		return f.clusters[r-firstCluster]
	}
	return string(r)
}

// put passes a glyph.
func (f *filter) put(g glyph) {
	if g.width == 0 {
		return
	}
	f.last = g
	if g.width == 2 {
		if cur := f.cursor(); cur.X == f.cols-1 && cur.State&wrapNext == 0 {
			f.pass(" ") // there is no room for both halves: they go to the next line
		}
	}
	if f.insert && f.cursor().State&wrapNext == 0 {
		f.passCSI('@', g.width)
	}
	f.buf = utf8.AppendRune(f.buf, g.r)
	if g.width == 2 {
		f.buf = utf8.AppendRune(f.buf, secondHalf)
	}
}

// sequence gives bytes to the open sequence, passes it if it is complete, and returns how many
// bytes it took.
func (f *filter) sequence(raw []byte) int {
	n, e := f.seq.scan(raw)
	switch e {
	case control:
		f.control(raw[n-1])
	case escEnded:
		f.escape()
	case csiEnded:
		f.csi()
	}
	return n
}

func (f *filter) control(b byte) {
	switch b {
	case esc:
		f.seq.begin()
	case '\n':
		if !f.alt {
			f.pass("\r")
		}
		f.pass("\n")
	case '\t', '\r', bs, vt, ff:
		f.buf = append(f.buf, b)
	case so:
		f.shift = 1
		f.charset()
	case si:
		f.shift = 0
		f.charset()
	}
}

// charset makes the character set in use vt's G0, as vt has no other.
func (f *filter) charset() {
	if f.charsets[f.shift] == '0' {
		f.pass("\x1b(0")
	} else {
		f.pass("\x1b(B")
	}
}

func (f *filter) escape() {
	switch final := f.seq.final; f.seq.inter {
	case '(':
		f.charsets[0] = final
		f.charset()
	case ')':
		f.charsets[1] = final
		f.charset()
	case '#':
		if final == '8' { // DECALN
			f.pass("\x1b#8")
		}
	case 0:
		switch final {
		case 'D', 'E', 'H', 'M', '7', '8': // IND, NEL, HTS, RI, DECSC, DECRC
			f.buf = append(f.buf, esc, final)
		case 'c': // RIS
			f.alt, f.insert, f.charsets, f.shift = false, false, [2]byte{}, 0
			f.pass("\x1bc\x1b[2J") // vt10x itself mistakes rows for columns, and clears only a part
		}
	}
}

func (f *filter) csi() {
	s := &f.seq
	if s.inter != 0 || s.prefix != 0 {
		if s.inter == 0 && s.prefix == '?' {
			f.privateModes()
		}
		return
	}
	switch s.final {
	case 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'I', 'L', 'M', 'P', 'S', 'X', 'Z', '@', '`', 'a', 'd',
		'e':
		f.passCSI(s.final, s.arg(0, 1))
	case 'T':
		if len(s.params) < 2 { // else it is about the mouse
			f.passCSI('T', s.arg(0, 1))
		}
	case 'H', 'f':
		f.passCSI(s.final, s.arg(0, 1), s.arg(1, 1))
	case 'J':
		f.eraseScreen(s.arg(0, 0))
	case 'K':
		if mode := s.arg(0, 0); mode <= 2 {
			f.passCSI('K', mode)
		}
	case 'b': // REP
		for range min(s.arg(0, 1), f.cols) {
			f.put(f.last)
		}
	default:
		f.csiState()
	}
}

// csiState passes a control sequence that changes no character: tab stops, modes, margins, the
// saved cursor.
func (f *filter) csiState() {
	s := &f.seq
	switch s.final {
	case 'g':
		if mode := s.arg(0, 0); mode == 0 || mode == 3 {
			f.passCSI('g', mode)
		}
	case 'h', 'l':
		for _, p := range s.params {
			if p == 4 { // IRM
				f.insert = s.final == 'h'
			}
		}
	case 'r': // DECSTBM
		top, bottom := s.arg(0, 1), min(s.arg(1, f.rows), f.rows)
		if top < bottom {
			f.passCSI('r', top, bottom)
		}
	case 's', 'u':
		if len(s.params) == 0 {
			f.passCSI(s.final)
		}
	}
}

// eraseScreen passes an ED. The saved lines of mode 3 are not on the screen.
func (f *filter) eraseScreen(mode int) {
	if mode > 2 {
		return
	}
	// vt10x forgets the row above
	if cur := f.cursor(); mode == 1 && cur.Y == 1 && cur.State&originMode == 0 {
		f.pass("\x1b[1;1H\x1b[2K")
		f.passCSI('H', 2, cur.X+1)
	}
	f.passCSI('J', mode)
}

// privateModes passes DECSET and DECRST of the modes that change what is shown.
func (f *filter) privateModes() {
	on := f.seq.final == 'h'
	if !on && f.seq.final != 'l' {
		return
	}
	for _, p := range f.seq.params {
		switch {
		case isScreenMode(p):
			f.screen(on, p)
		case p == 6 || p == 7 || p == 1048: // DECOM, DECAWM, cursor
			f.passMode(on, p)
		}
	}
}

// screen switches between the normal and the alternate screen. (vt10x, when asked to leave the
// alternate screen while it is on the normal one, enters it.)
func (f *filter) screen(on bool, mode int) {
	if on == f.alt {
		return
	}
	f.alt = on
	f.passMode(on, mode)
	if on {
		f.passCSI('J', 2)
	}
}

func (f *filter) passMode(on bool, mode int) {
	f.pass("\x1b[?" + strconv.Itoa(mode))
	if on {
		f.pass("h")
	} else {
		f.pass("l")
	}
}
