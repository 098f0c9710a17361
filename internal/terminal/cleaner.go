package terminal

import "unicode/utf8"

// A Cleaner turns what a program writes to its terminal into the text that a person reads there. Colours, titles,
// queries and modes vanish. Of a line that is written over ("\r", backspace, cursor moves, erasures), the last state
// remains. Lines have no width: nothing is wrapped.
//
// A log has no rows to go back to. A control that moves the cursor to another row, or clears the screen, ends the line if
// there is something on it, and writing goes on with a new line. What a program shows on the alternate screen is no part
// of the log.
//
// Text without controls passes byte for byte, invalid UTF-8 included. The text does not depend on how the stream is cut
// into calls of Append. Memory is bounded: only the last 64 KiB of an unfinished line can still be written over.
//
// The zero value is ready for use.
type Cleaner struct {
	line line
	seq  sequence
	rune []byte // the begin of a rune that is not complete
	alt  bool   // the alternate screen is on

	queries []Query
}

// Append takes the next bytes of the stream, and appends to dst the text that can no longer change: complete lines, each
// with a "\n" at its end, and the begin of a line that has got too long to be kept.
func (c *Cleaner) Append(dst, raw []byte) []byte {
	c.line.out = dst
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

// Line returns the unfinished line as it is now, without an incomplete rune at its end. The bytes are valid until the
// next call of a method.
func (c *Cleaner) Line() []byte { return c.line.show() }

// FullScreen reports whether the alternate screen is on.
func (c *Cleaner) FullScreen() bool { return c.alt }

// A Query is what a program asks its terminal. The answer is typed.
type Query byte

const (
	Status     Query = iota + 1 // CSI 5 n: does the terminal work?
	Cursor                      // CSI 6 n: where is the cursor?
	Attributes                  // CSI c: what kind of terminal is it?
)

// maxQueries bounds what Queries keeps.
const maxQueries = 16

// Queries returns what the stream has asked since the last call.
func (c *Cleaner) Queries() []Query {
	queries := c.queries
	c.queries = nil
	return queries
}

// query keeps the control sequence if it is a query.
func (c *Cleaner) query() {
	var q Query
	switch arg := c.seq.arg(0, 0); {
	case c.seq.prefix != 0 || c.seq.inter != 0:
	case c.seq.final == 'n' && arg == 5:
		q = Status
	case c.seq.final == 'n' && arg == 6:
		q = Cursor
	case c.seq.final == 'c' && arg == 0:
		q = Attributes
	}
	if q != 0 && len(c.queries) < maxQueries {
		c.queries = append(c.queries, q)
	}
}

// Flush says that the stream has ended: an incomplete escape sequence is dropped, and the bytes of an incomplete rune
// become part of the line as they are.
func (c *Cleaner) Flush() {
	c.seq.state = ground
	if !c.alt {
		c.line.write(c.rune)
	}
	c.rune = c.rune[:0]
}

// Reset forgets everything, the unfinished line and the alternate screen included. The Cleaner is as good as new.
func (c *Cleaner) Reset() {
	*c = Cleaner{line: line{text: c.line.text[:0]}, rune: c.rune[:0]}
}

// finishRune completes the incomplete rune, or finds that it is broken, and returns the rest of raw.
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

func (c *Cleaner) text(s []byte) {
	if !c.alt {
		c.line.append(s)
	}
}

// sequence gives bytes to the open sequence, obeys it once it is complete, and returns how many bytes it took.
func (c *Cleaner) sequence(raw []byte) int {
	n, e := c.seq.scan(raw)
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
	if c.alt {
		return
	}
	switch b {
	case '\n', '\t':
		c.line.append([]byte{b})
	case '\r':
		c.line.home()
	case bs:
		c.line.move(-1)
	case vt, ff:
		c.line.end()
	}
}

func (c *Cleaner) escape() {
	if c.seq.inter != 0 {
		return // a character set
	}
	if c.seq.final == 'c' { // RIS
		c.alt = false
	}
	if c.alt {
		return
	}
	switch c.seq.final {
	case '7': // DECSC
		c.line.save()
	case '8': // DECRC
		c.line.restore()
	case 'D', 'E', 'M', 'c': // IND, NEL, RI, RIS
		c.line.end()
	}
}

func (c *Cleaner) csi() {
	if on, ok := c.seq.switches(); ok {
		c.alt = on
	}
	c.query()
	if c.alt || c.seq.prefix != 0 || c.seq.inter != 0 {
		return
	}
	s, l := &c.seq, &c.line
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
			l.end()
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
		l.restore()
	// CUU, CUD, CNL, CPL, CUP, HVP, VPA, VPR; IL, DL, SU, SD, which move the line away; DECSTBM, which homes the cursor
	case 'A', 'B', 'E', 'F', 'H', 'f', 'd', 'e', 'L', 'M', 'S', 'T', 'r':
		l.end()
	}
}
