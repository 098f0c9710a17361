package terminal

import (
	"bytes"
	"cmp"
	"iter"
	"unicode/utf8"
)

// A Cleaner turns what a program writes to its terminal into the text that a person reads there.
// It drops colours, titles, queries, modes and all other controls, including those of the C1 range
// and those that change the direction of text. If text is written over ("\r", backspace, cursor
// moves, erasures), its last state remains.
//
// A program can rewrite as many rows as the terminal has. What scrolls off the screen is final. A
// line that is longer than the terminal is wide remains one line. While a program moves only within
// its last line, that line has no width.
//
// Where on the screen a program begins is not known. So the rows that it has not written to count
// as being above its own if it moves to a row by number. Text that it writes there comes first.
// Rows that it only moves over are not part of the log. When a program clears the screen for the
// first time, what it has printed remains in the log. From then on it draws on an empty screen, and
// what it clears again is gone.
//
// What a program draws on the alternate screen is not part of the log. But a program may crash or
// be killed there without leaving the alternate screen, and other programs then print on it. So the
// Cleaner keeps the text that came after the last drawing. That text becomes part of the log when
// the stream ends, when the next program enters the alternate screen, and when the text has become
// longer than any screen.
//
// Text without controls passes byte for byte if it is UTF-8. A run of bytes that are not UTF-8
// becomes U+FFFD. The text does not depend on how the stream is split into calls of Append. Memory
// is bounded: only the last 8 KiB of an unfinished line can still be written over, and of the lines
// before it the screen's, or 64 KiB if they are longer than the terminal is wide. Time is bounded
// too: no control takes longer than to write such a line, a row of 1024 columns, or a newline for
// each row of the screen.
//
// The zero value is ready for use. Its terminal has 24 rows and 80 columns.
type Cleaner struct {
	page        page
	rows, cols  int // of the terminal; 0: the default
	seq         sequence
	rune        []byte // the start of an incomplete rune
	lastInvalid bool   // the last character is U+FFFD for invalid bytes

	alt     bool // the alternate screen is on
	undrawn page // the text on the alternate screen that came after the last drawing
	drawn   bool // the alternate screen shows more than undrawn

	stepping bool  // AppendStep is under way
	changed  bool  // text has come in this step
	held     event // a complete sequence that the step has stopped before

	chunkLen int // how many bytes the last Append got
	restLen  int // how many of these come after the sequence
	queries  []Query
	buf      []byte
}

// maxUndrawn bounds the complete lines in undrawn, in bytes. So much text without any drawing shows
// that no program draws on the alternate screen: the largest screens hold less.
const maxUndrawn = 64 << 10

const (
	defaultRows = 24
	defaultCols = 80
)

// SetSize sets the size of the terminal. Sizes below 1 mean the default, and sizes above 1024 mean
// 1024. Rows that are no longer on the screen become final at the next Append.
func (c *Cleaner) SetSize(rows, cols int) {
	c.rows, c.cols = min(max(rows, 0), maxSize), min(max(cols, 0), maxSize)
}

// Append reads the next bytes of the stream. It appends to dst the text that can no longer change:
// complete lines, each with its "\n", and the start of a line that has become too long to keep.
func (c *Cleaner) Append(dst, raw []byte) []byte {
	c.begin(dst, raw)
	c.read(raw)
	return c.end()
}

// AppendStep is Append, except that it stops before a control that may rewrite other rows if text
// has come since the step before. Then more is true, and the caller must call it again for rest. So
// the caller can see each text that is on the screen for a while.
func (c *Cleaner) AppendStep(dst, raw []byte) (text, rest []byte, more bool) {
	c.begin(dst, raw)
	c.stepping, c.changed = true, false
	rest = c.read(raw)
	c.stepping = false
	return c.end(), rest, c.held != none
}

// begin begins an Append.
func (c *Cleaner) begin(dst, raw []byte) {
	c.page.out, c.page.finals = dst, c.page.finals[:0]
	c.page.setUp(cmp.Or(c.rows, defaultRows), cmp.Or(c.cols, defaultCols))
	c.chunkLen, c.queries = len(raw), c.queries[:0]
	if held := c.held; held != none {
		c.held = none
		c.handle(held)
	}
}

// end ends an Append.
func (c *Cleaner) end() (text []byte) {
	text, c.page.out = c.page.out, nil
	return text
}

// read reads bytes of the stream. It returns those that remain because of AppendStep.
func (c *Cleaner) read(raw []byte) (rest []byte) {
	raw = c.completeRune(raw)
	for len(raw) > 0 {
		if c.seq.open() {
			raw = raw[c.parseSequence(raw):]
			if c.held != none {
				break
			}
			continue
		}
		n := textLen(raw)
		if n == len(raw) {
			n = wholeRunes(raw)
			c.writeText(raw[:n])
			c.rune = append(c.rune, raw[n:]...)
			return nil
		}
		c.writeText(raw[:n])
		c.handleControl(raw[n])
		raw = raw[n+1:]
	}
	return raw
}

// Finals returns where the text of marked rows is in the text that the last Append has appended, in
// order. Offsets include the bytes that dst had before. The result is valid until the next Append.
func (c *Cleaner) Finals() []Final { return c.page.finals }

// Mark marks all rows that can still be rewritten, so that Finals tells of them.
func (c *Cleaner) Mark() {
	for _, r := range c.page.rows {
		r.marked = true
	}
}

// Open returns the lines that can still be rewritten, each with an id that it keeps. All but the
// last end with "\n". If the last does not, it is unfinished. An incomplete rune at its end is left
// out. A text is valid until the next one.
func (c *Cleaner) Open() iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) { c.buf = c.page.lines(c.buf, yield) }
}

// AppendOpen appends the text of the lines that can still be rewritten.
func (c *Cleaner) AppendOpen(dst []byte) []byte {
	for _, text := range c.Open() {
		dst = append(dst, text...)
	}
	return dst
}

// Text returns the text of a whole stream, or of a part of one.
func Text(raw []byte) string {
	var c Cleaner
	return string(c.AppendOpen(c.Flush(c.Append(nil, raw))))
}

// Line returns the line that the cursor is on, without an incomplete rune at its end. The bytes are
// valid until the next call of a method.
func (c *Cleaner) Line() []byte {
	if len(c.page.rows) == 0 {
		return nil
	}
	return c.page.cursor().visible()
}

// FullScreen reports whether the alternate screen is on. After Flush, it reports whether the stream
// left the alternate screen on and more was on it than the text that Flush has appended.
func (c *Cleaner) FullScreen() bool { return c.alt }

// Flush ends the stream. It appends to dst the text that the end makes final: all but the lines of
// Open. It drops an incomplete escape sequence. An incomplete rune becomes U+FFFD. Text that came
// on the alternate screen after the last drawing becomes part of the log.
func (c *Cleaner) Flush(dst []byte) []byte {
	c.begin(dst, nil)
	c.seq.state = ground
	c.writeText(c.rune)
	c.rune = c.rune[:0]
	if c.alt {
		c.logUndrawn()
	}
	c.alt = c.alt && c.drawn
	return c.end()
}

// Reset makes the Cleaner as good as new, with the same size. It forgets the lines of Open and the
// alternate screen too.
func (c *Cleaner) Reset() {
	*c = Cleaner{rows: c.rows, cols: c.cols, rune: c.rune[:0]}
}

// current returns the page that is written to.
func (c *Cleaner) current() *page {
	if c.alt {
		return &c.undrawn
	}
	return &c.page
}

// clearUndrawn forgets the text on the alternate screen. A row of it is final when it has ended.
func (c *Cleaner) clearUndrawn() {
	c.undrawn = page{out: c.undrawn.out[:0]}
	c.undrawn.setUp(1, c.page.width)
}

// logUndrawn moves the text after the last drawing to the log.
func (c *Cleaner) logUndrawn() {
	if c.undrawn.isEmpty() {
		return
	}
	p := &c.page
	p.at = len(p.rows) - 1
	p.finish(len(p.rows))
	p.out = append(p.out, c.undrawn.out...)
	r := c.undrawn.rows[0]
	p.lastID++
	r.id = p.lastID
	p.rows, p.at, p.laidOut, p.topKnown = append(p.rows, r), 0, false, false
	p.top, p.bottom = 0, 0
	c.clearUndrawn()
}

// changeScreen notes that a program draws on the alternate screen.
func (c *Cleaner) changeScreen() {
	c.drawn = c.drawn || !c.undrawn.isEmpty()
	c.clearUndrawn()
}

// leaveIfUndrawn leaves the alternate screen if it shows that no program draws there.
func (c *Cleaner) leaveIfUndrawn() {
	if len(c.undrawn.out) >= maxUndrawn {
		c.logUndrawn()
		c.alt = false
	}
}

// switchScreen switches to the alternate screen or to the normal one.
func (c *Cleaner) switchScreen(alt bool) {
	switch {
	case c.alt && alt: // the program that entered it last has not left it
		c.logUndrawn()
	case c.alt:
		c.changeScreen()
	}
	c.alt, c.drawn = alt, false
	if alt {
		c.clearUndrawn()
	}
}

// completeRune completes the incomplete rune with bytes of raw, and writes it. An invalid rune is
// written as such. completeRune returns the rest of raw.
func (c *Cleaner) completeRune(raw []byte) []byte {
	if len(c.rune) == 0 {
		return raw
	}
	for len(raw) > 0 && !utf8.FullRune(c.rune) {
		if utf8.RuneStart(raw[0]) {
			break
		}
		c.rune, raw = append(c.rune, raw[0]), raw[1:]
	}
	if len(raw) > 0 || utf8.FullRune(c.rune) {
		c.writeText(c.rune)
		c.rune = c.rune[:0]
	}
	return raw
}

var replacement = []byte(string(utf8.RuneError))

// writeText writes text without its controls of several bytes. s has no control of one byte.
func (c *Cleaner) writeText(s []byte) {
	c.changed = c.changed || len(s) > 0
	for len(s) > 0 {
		n := len(s)
		if c.alt {
			// Which line ends the alternate screen must not depend on the pieces that s comes in.
			if end := bytes.IndexByte(s, '\n'); end >= 0 {
				n = end + 1
			}
		}
		c.writeLine(s[:n])
		c.leaveIfUndrawn()
		s = s[n:]
	}
}

// writeLine writes text to the current page.
func (c *Cleaner) writeLine(s []byte) {
	for len(s) > 0 {
		if n := plainLen(s); n > 0 {
			c.current().write(s[:n])
			c.lastInvalid = false
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRune(s)
		if r == utf8.RuneError && !c.lastInvalid {
			c.current().write(replacement)
			c.lastInvalid = true
		}
		s = s[size:]
	}
}

// parseSequence passes bytes to the open sequence, and handles the sequence when it is complete. It
// returns how many bytes it has used.
func (c *Cleaner) parseSequence(raw []byte) int {
	n, e := c.seq.scan(raw)
	c.restLen = len(raw) - n
	switch e {
	case control:
		c.handleControl(raw[n-1])
	case escEnded, csiEnded:
		if c.stepping && c.changed && c.rewrites(e) {
			c.held = e
		} else {
			c.handle(e)
		}
	}
	return n
}
