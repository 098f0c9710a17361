package terminal

import "unicode/utf8"

// A Cleaner turns what a program writes to its terminal into the text that a person reads there.
// Colours, titles, queries and modes vanish, and all controls with them, also those of the C1 range
// and those that change the direction of text. Of a line that is written over ("\r", backspace,
// cursor moves, erasures), the last state remains. Lines have no width: nothing is wrapped.
//
// A log has no rows to go back to. A control that moves the cursor to another row, or clears the
// screen, ends the line if there is something on it, and writing goes on with a new line.
//
// What a program draws on the alternate screen is no part of the log. If the program is killed
// there, or crashes, what others print comes behind the last thing that it drew. So the text since
// then is kept, and becomes part of the log if nothing is drawn any more: when the stream ends,
// when the next program enters the alternate screen, and when it has got longer than any screen.
//
// Text without controls passes byte for byte if it is UTF-8. U+FFFD stands for a run of bytes that
// are not. The text does not depend on how the stream is cut into calls of Append. Memory is
// bounded: only the last 64 KiB of an unfinished line can still be written over.
//
// The zero value is ready for use.
type Cleaner struct {
	line line
	seq  sequence
	rune []byte // the begin of a rune that is not complete
	bad  bool   // the last character stands for bytes that are not UTF-8

	alt    bool // the alternate screen is on
	behind line // of the alternate screen: what came behind the last thing that was drawn
	drawn  bool // the alternate screen shows more than that

	chunk, left int // bytes of the last Append, and those of them that come after the sequence
	queries     []Query
}

// maxBehind is how many bytes of complete lines on the alternate screen, with nothing drawn among
// them, show that nobody draws there any more. The largest screens have less.
const maxBehind = 64 << 10

// Append takes the next bytes of the stream, and appends to dst the text that can no longer change:
// complete lines, each with a "\n" at its end, and the begin of a line that has got too long to be
// kept.
func (c *Cleaner) Append(dst, raw []byte) []byte {
	c.line.out = dst
	c.chunk, c.queries = len(raw), c.queries[:0]
	raw = c.finishRune(raw)
	for len(raw) > 0 {
		if c.seq.open() {
			raw = raw[c.sequence(raw):]
			continue
		}
		n := textLen(raw)
		if n == len(raw) {
			n = wholeRunes(raw)
			c.text(raw[:n])
			c.rune = append(c.rune, raw[n:]...)
			break
		}
		c.text(raw[:n])
		c.control(raw[n])
		raw = raw[n+1:]
	}
	dst, c.line.out = c.line.out, nil
	return dst
}

// Text returns the text of a whole stream, or of a piece of one.
func Text(raw []byte) string {
	var c Cleaner
	text := c.Flush(c.Append(nil, raw))
	return string(append(text, c.Line()...))
}

// Line returns the unfinished line as it is now, without an incomplete rune at its end. The bytes
// are valid until the next call of a method.
func (c *Cleaner) Line() []byte { return c.line.show() }

// FullScreen reports whether the alternate screen is on. After Flush it reports whether it was left
// on, and showed more than what Flush has returned.
func (c *Cleaner) FullScreen() bool { return c.alt }

// A Query is what a program asks its terminal. The answer is typed.
type Query struct {
	Asks Asked
	At   int // where it ends, in the bytes of the last Append
}

// Asked is what a Query asks for.
type Asked byte

const (
	Status     Asked = iota + 1 // CSI 5 n: does the terminal work?
	Cursor                      // CSI 6 n: where is the cursor?
	Attributes                  // CSI c: what kind of terminal is it?
)

// maxQueries bounds what Queries returns.
const maxQueries = 16

// Queries returns what the bytes of the last Append have asked, in that order. It is valid until
// the next Append.
func (c *Cleaner) Queries() []Query { return c.queries }

// query keeps the control sequence if it is a query.
func (c *Cleaner) query() {
	var asks Asked
	switch arg := c.seq.arg(0, 0); {
	case c.seq.prefix != 0 || c.seq.inter != 0:
	case c.seq.final == 'n' && arg == 5:
		asks = Status
	case c.seq.final == 'n' && arg == 6:
		asks = Cursor
	case c.seq.final == 'c' && arg == 0:
		asks = Attributes
	}
	if asks != 0 && len(c.queries) < maxQueries {
		c.queries = append(c.queries, Query{asks, c.chunk - c.left})
	}
}

// Flush says that the stream has ended, and appends to dst what this makes final, as Append does.
// An incomplete escape sequence is dropped, an incomplete rune becomes U+FFFD, and text that came
// on the alternate screen after all that was drawn there becomes part of the log.
func (c *Cleaner) Flush(dst []byte) []byte {
	c.line.out = dst
	c.seq.state = ground
	c.text(c.rune)
	c.rune = c.rune[:0]
	if c.alt {
		c.log()
	}
	c.alt = c.alt && c.drawn
	dst, c.line.out = c.line.out, nil
	return dst
}

// Reset forgets everything, the unfinished line and the alternate screen included. The Cleaner is
// as good as new.
func (c *Cleaner) Reset() {
	*c = Cleaner{line: line{text: c.line.text[:0]}, rune: c.rune[:0]}
}

// current returns the line that the cursor is on.
func (c *Cleaner) current() *line {
	if c.alt {
		return &c.behind
	}
	return &c.line
}

// log makes what came behind the drawing part of the log.
func (c *Cleaner) log() {
	if len(c.behind.out)+len(c.behind.show()) == 0 {
		return
	}
	c.line.end()
	out := append(c.line.out, c.behind.out...)
	c.line = c.behind
	c.line.out = out
	c.behind = line{}
}

// row takes a control that moves the cursor to another row, or clears the screen.
func (c *Cleaner) row() {
	if !c.alt {
		c.line.end()
		return
	}
	c.drawn = c.drawn || len(c.behind.out)+len(c.behind.show()) > 0
	c.behind.out = c.behind.out[:0]
	c.behind.reset()
}

// check finds that nobody draws on the alternate screen any more.
func (c *Cleaner) check() {
	if len(c.behind.out) >= maxBehind {
		c.log()
		c.alt = false
	}
}

// screen chooses the alternate screen, or the normal one.
func (c *Cleaner) screen(alt bool) {
	switch {
	case c.alt && alt: // the program that entered it before has not left it
		c.log()
	case c.alt:
		c.row()
	}
	c.alt, c.drawn = alt, false
}

// finishRune completes the incomplete rune, or finds that it is broken, and returns the rest of
// raw.
func (c *Cleaner) finishRune(raw []byte) []byte {
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
		c.text(c.rune)
		c.rune = c.rune[:0]
	}
	return raw
}

var replacement = []byte(string(utf8.RuneError))

// text writes text. Controls of more than a byte are left out.
func (c *Cleaner) text(s []byte) {
	l := c.current()
	for len(s) > 0 {
		if n := plainLen(s); n > 0 {
			l.append(s[:n])
			c.bad = false
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRune(s)
		if r == utf8.RuneError && !c.bad {
			l.append(replacement)
			c.bad = true
		}
		s = s[size:]
	}
	c.check()
}

// sequence gives bytes to the open sequence, obeys it once it is complete, and returns how many
// bytes it took.
func (c *Cleaner) sequence(raw []byte) int {
	n, e := c.seq.scan(raw)
	c.left = len(raw) - n
	switch e {
	case control:
		c.control(raw[n-1])
	case escEnded:
		c.escape()
	case csiEnded:
		c.csi()
	}
	return n
}

func (c *Cleaner) control(b byte) {
	if b == esc {
		c.seq.begin()
		return
	}
	l := c.current()
	switch b {
	case '\n', '\t':
		l.append([]byte{b})
	case '\r':
		l.home()
	case bs:
		l.move(-1)
	case vt, ff:
		l.end()
	}
	c.check()
}

func (c *Cleaner) escape() {
	if c.seq.inter != 0 {
		return // a character set
	}
	l := c.current()
	switch c.seq.final {
	case '7': // DECSC
		l.save()
	case '8': // DECRC
		if !l.restore() {
			c.row()
		}
	case 'D', 'E': // IND, NEL
		l.end()
		c.check()
	case 'M': // RI
		c.row()
	case 'c': // RIS
		c.screen(false)
		c.row()
	}
}

func (c *Cleaner) csi() {
	if on, ok := c.seq.switches(); ok {
		c.screen(on)
	}
	c.query()
	if c.seq.prefix != 0 || c.seq.inter != 0 {
		return
	}
	s, l := &c.seq, c.current()
	n := s.arg(0, 1)
	switch s.final {
	case 'C', 'a': // CUF, HPR
		l.move(n)
	case 'D': // CUB
		l.move(-n)
	case 'G', '`': // CHA, HPA
		l.moveTo(n - 1)
	case 'I': // CHT
		l.moveTo((l.column()/tabWidth + n) * tabWidth)
	case 'Z': // CBT
		l.moveTo(((l.column()+tabWidth-1)/tabWidth - n) * tabWidth)
	case 'K': // EL
		l.erase(s.arg(0, 0))
	case 'J': // ED
		if mode := s.arg(0, 0); mode < 2 {
			l.erase(mode)
		} else {
			c.row()
		}
	case 'X': // ECH
		l.eraseCells(n)
	case 'P': // DCH
		l.deleteCells(n)
	case '@': // ICH
		l.insertCells(n)
	case 'b': // REP
		l.repeat(n)
	case 's':
		l.save()
	case 'u':
		if !l.restore() {
			c.row()
		}
	// CUU, CUD, CNL, CPL, CUP, HVP, VPA, VPR; IL, DL, SU, SD, which move the line away; DECSTBM,
	// which homes the cursor
	case 'A', 'B', 'E', 'F', 'H', 'f', 'd', 'e', 'L', 'M', 'S', 'T', 'r':
		c.row()
	}
}
