package terminal

import (
	"strconv"
	"unicode/utf8"

	"github.com/hinshun/vt10x"
)

// A filter protects a vt10x terminal from its input. vt10x panics at a negative parameter, is busy
// for minutes with a large one, stops at an invalid rune, and mistakes private sequences for others
// with the same last byte. The filter passes text, and the sequences that vt10x knows, with
// parameters in range. It drops all other sequences, and colours, because only text is rendered.
//
// The filter also implements what vt10x lacks or does wrong: wide runes, combining marks, insert
// mode, REP, SO and SI, RIS, ED 1 on the second row, and a switch to the screen that is already on.
type filter struct {
	vt         vt10x.Terminal
	rows, cols int
	seq        sequence
	buf        []byte // passed, but not yet written to vt

	alt      bool    // the alternate screen is on
	insert   bool    // insert mode is on
	charsets [2]byte // G0 and G1; '0' is line drawing
	shift    int     // the index of the one in use

	last     glyph           // the last character, for REP
	clusters []string        // characters of several runes
	numbers  map[string]rune // the runes that stand for them
}

// A glyph is a character as it is stored in vt10x, and its width in columns. In vt10x each rune
// takes one cell. So a wide rune is followed by secondHalf. A character of several runes is
// represented by one rune of plane 16 of Unicode, which is for private use: firstCluster plus the
// character's index in clusters. Runes of the stream that are in that plane are represented in this
// way too.
type glyph struct {
	r     rune
	width int
}

const (
	firstNonControl = 0xa0 // the first rune after the C1 controls
	firstCluster    = 0x100000
	secondHalf      = utf8.MaxRune

	// These are bits of vt10x's Cursor.State. vt10x does not export their names.
	wrapNext   = 1 << 1 // the last column has been written to, so the next character wraps
	originMode = 1 << 2 // rows count from the top of the scrolling region
)

// write filters raw. The next flush writes what has passed to vt.
func (f *filter) write(raw []byte) {
	for len(raw) > 0 {
		if f.seq.open() {
			raw = raw[f.parseSequence(raw):]
			continue
		}
		n := textLen(raw)
		f.passText(raw[:n])
		if n < len(raw) {
			f.handleControl(raw[n])
			n++
		}
		raw = raw[n:]
	}
}

func (f *filter) flush() {
	f.vt.Write(f.buf) // never fails, because buf holds whole runes
	f.buf = f.buf[:0]
}

// cursor flushes, and returns vt's cursor.
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

// passText passes text, which may contain "\n" and "\t".
func (f *filter) passText(s []byte) {
	for len(s) > 0 {
		n := asciiLen(s)
		if n < len(s) && s[n] >= utf8.RuneSelf {
			n-- // marks may follow the last ASCII character
		}
		switch {
		case s[0] == '\n' || s[0] == '\t':
			f.handleControl(s[0])
			n = 1
		case n > 0 && !f.insert:
			f.buf = append(f.buf, s[:n]...)
			f.last = glyph{rune(s[n-1]), 1}
		default:
			n = clusterLen(s)
			f.passGlyph(f.glyphOf(s[:n]))
		}
		s = s[n:]
	}
}

// clusterLen returns the length of the first character of s: a rune and its combining marks.
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

// glyphOf returns the glyph of a character. The width of an invisible character is 0.
func (f *filter) glyphOf(s []byte) glyph {
	r, size := utf8.DecodeRune(s)
	g := glyph{r, runeWidth(r)}
	if len(s) == size && r < firstCluster {
		return g
	}
	cluster := string(r) + string(s[size:]) // the first byte of s may be invalid
	number, ok := f.numbers[cluster]
	if !ok {
		number = firstCluster + rune(len(f.clusters))
		if number == secondHalf { // all numbers are in use
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

// textOf returns the character that a rune on vt stands for. It is the inverse of glyphOf.
func (f *filter) textOf(r rune) string {
	if r >= firstCluster && r != secondHalf {
		return f.clusters[r-firstCluster]
	}
	return string(r)
}

// passGlyph passes a glyph.
func (f *filter) passGlyph(g glyph) {
	if g.width == 0 {
		return
	}
	f.last = g
	if g.width == 2 {
		if cur := f.cursor(); cur.X == f.cols-1 && cur.State&wrapNext == 0 {
			f.pass(" ") // both halves must be on the same line, so they go to the next one
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

// parseSequence passes bytes to the open sequence, and handles the sequence when it is complete. It
// returns how many bytes it has used.
func (f *filter) parseSequence(raw []byte) int {
	n, e := f.seq.scan(raw)
	switch e {
	case control:
		f.handleControl(raw[n-1])
	case escEnded:
		f.handleEscape()
	case csiEnded:
		f.handleCSI()
	}
	return n
}

func (f *filter) handleControl(b byte) {
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
		f.passCharset()
	case si:
		f.shift = 0
		f.passCharset()
	}
}

// passCharset makes the character set in use vt's G0. vt has no other.
func (f *filter) passCharset() {
	if f.charsets[f.shift] == '0' {
		f.pass("\x1b(0")
	} else {
		f.pass("\x1b(B")
	}
}

func (f *filter) handleEscape() {
	switch final := f.seq.final; f.seq.inter {
	case '(':
		f.charsets[0] = final
		f.passCharset()
	case ')':
		f.charsets[1] = final
		f.passCharset()
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
			// vt10x's own RIS takes rows for columns, and clears only a part of the screen.
			f.pass("\x1bc\x1b[2J")
		}
	}
}

func (f *filter) handleCSI() {
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
		if len(s.params) < 2 { // with more parameters it starts mouse tracking
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
			f.passGlyph(f.last)
		}
	default:
		f.handleStateCSI()
	}
}

// handleStateCSI handles a control sequence that changes no character: tab stops, modes, margins
// and the saved cursor.
func (f *filter) handleStateCSI() {
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

// eraseScreen passes an ED. It drops mode 3, which erases lines that are not on the screen.
func (f *filter) eraseScreen(mode int) {
	if mode > 2 {
		return
	}
	// For the second row, vt10x does not erase the row above it.
	if cur := f.cursor(); mode == 1 && cur.Y == 1 && cur.State&originMode == 0 {
		f.pass("\x1b[1;1H\x1b[2K")
		f.passCSI('H', 2, cur.X+1)
	}
	f.passCSI('J', mode)
}

// privateModes passes DECSET and DECRST for modes that change what the screen shows.
func (f *filter) privateModes() {
	on := f.seq.final == 'h'
	if !on && f.seq.final != 'l' {
		return
	}
	for _, p := range f.seq.params {
		switch {
		case isScreenMode(p):
			f.switchScreen(on, p)
		case p == 6 || p == 7 || p == 1048: // DECOM, DECAWM, cursor
			f.passMode(on, p)
		}
	}
}

// switchScreen switches to the alternate screen or to the normal one. It does nothing if that
// screen is on: asked to leave the alternate screen while the normal one is on, vt10x would enter
// it.
func (f *filter) switchScreen(on bool, mode int) {
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
