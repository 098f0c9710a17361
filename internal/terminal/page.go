package terminal

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// A page is what a program prints on the normal screen: rows that it can still rewrite, and before
// them text that is final. There are at most as many rows as the terminal has.
//
// A row that is only written to at its end has no width, as long as it is the last one. When the
// cursor moves to another row, layOut splits the rows that are wider than the terminal.
type page struct {
	out           []byte // the text that is final
	height, width int
	rows          []*row // top first; at least one
	at            int    // the index of the cursor's row
	laidOut       bool   // no row is wider than the terminal

	// topKnown says that rows[0] is the first row of the screen. Otherwise the screen has more
	// rows, which the program has not written to. How many of them are above is not known, so they
	// count as being above until the program moves below its rows.
	topKnown bool
	cleared  bool // the program has cleared the screen
	// top and bottom are the first and the last row of the scrolling region. If bottom is 0, there
	// is none. If there is one, rows has all rows of the screen.
	top, bottom int
	saved       savedCursor
	lastID      uint64
	free        []*row
	finals      []Final
}

// A row is a row of the screen. It is void if it has no text and no newline has left it: then it
// is not part of the log.
type row struct {
	line
	id     uint64
	ended  bool // a newline has left it
	wraps  bool // its text goes on in the next row, without a newline
	fits   bool // it is not wider than the terminal
	marked bool // see Cleaner.Mark
}

func (r *row) void() bool { return !r.ended && !r.wraps && r.isEmpty() }

type savedCursor struct {
	id      uint64 // of the row; 0: nothing is saved
	at, col int
}

// A Final says where the text of a marked row is in the text that Append has returned. The text of
// a part of a long line does not end with "\n".
type Final struct {
	ID         uint64
	Begin, End int
}

// maxOpen bounds the text of the rows above the last one, in bytes, if there are lines among them
// that are wider than the terminal.
const maxOpen = 64 << 10

// setUp makes the zero value usable, and sets the size.
func (p *page) setUp(height, width int) {
	if p.height != height || p.width != width {
		p.height, p.width = height, width
		p.top, p.bottom, p.laidOut, p.topKnown = 0, 0, false, p.topKnown && p.cleared
		for _, r := range p.rows {
			r.fits = false
		}
	}
	if len(p.rows) == 0 {
		p.rows = append(p.rows, p.newRow())
	}
	p.finish(len(p.rows) - p.height)
}

// newRow returns an empty row.
func (p *page) newRow() *row {
	p.lastID++
	n := len(p.free)
	if n == 0 {
		return &row{id: p.lastID}
	}
	r := p.free[n-1]
	p.free = p.free[:n-1]
	r.reset()
	r.id, r.ended, r.wraps, r.fits, r.marked = p.lastID, false, false, false, false
	return r
}

// recycle keeps rows for newRow, unless they need much memory.
func (p *page) recycle(rows ...*row) {
	for _, r := range rows {
		if len(p.free) < p.height && cap(r.text) < 4<<10 && cap(r.cells) < 1<<10 {
			p.free = append(p.free, r)
		}
	}
}

// cursor returns the row that the cursor is on.
func (p *page) cursor() *row { return p.rows[p.at] }

func (p *page) isLast() bool { return p.at == len(p.rows)-1 }

// inside reports whether the width of the terminal matters to the cursor's row.
func (p *page) inside() bool { return !p.isLast() || p.bottom > 0 }

// write writes s at the cursor. Each "\n" in s ends a line.
func (p *page) write(s []byte) {
	scrolled := false // s has fewer lines than the screen
	for len(s) > 0 {
		switch r := p.cursor(); {
		case p.inside():
			s = s[p.writeInside(s):]
		case !r.inCells && !r.atHome && !scrolled:
			s = s[p.scrollOff(s):]
			scrolled = true
		case !r.inCells && !r.atHome:
			s = s[p.writePlain(s):]
		case s[0] == '\n':
			p.newline()
			s = s[1:]
		default:
			n := bytes.IndexByte(s, '\n')
			if n < 0 {
				n = len(s)
			}
			r.fits, p.laidOut = false, false
			s = s[r.write(s[:n]):]
			p.shorten()
		}
	}
}

// scrollOff writes the lines at the start of s that scroll off the screen, and makes all rows final
// that do so too. It returns how many bytes it has written. The last row is plain.
func (p *page) scrollOff(s []byte) int {
	n := beforeLines(s, p.height)
	if n == 0 {
		return 0
	}
	p.laidOut = false
	p.finish(len(p.rows) - 1)
	r, begin := p.cursor(), len(p.out)
	p.out = append(append(p.out, r.text...), s[:n]...)
	p.noteFinal(r, begin, begin+len(r.text)+bytes.IndexByte(s, '\n')+1)
	p.recycle(r)
	p.rows[0] = p.newRow()
	return n
}

// writePlain writes at the end of the last row, which is plain. It returns how many bytes it has
// written.
func (p *page) writePlain(s []byte) int {
	r := p.cursor()
	r.fits, p.laidOut = false, false
	end := bytes.IndexByte(s, '\n')
	if end < 0 {
		n := min(len(s), maxLine-len(r.text))
		r.text = append(r.text, s[:n]...)
		p.shorten()
		return n
	}
	if n := min(end, maxLine-len(r.text)); n < end {
		r.text = append(r.text, s[:n]...)
		p.shorten()
		return n
	}
	r.text = append(r.text, s[:end]...)
	if p.shorten(); end < len(s) {
		p.newline()
		end++
	}
	return end
}

var newline = []byte("\n")

// beforeLines returns the length of s without its last n-1 complete lines and what follows them. If
// s has fewer than n complete lines, beforeLines returns 0.
func beforeLines(s []byte, n int) int {
	if bytes.Count(s, newline) < n {
		return 0
	}
	for ; n > 1; n-- {
		s = s[:bytes.LastIndexByte(s, '\n')]
	}
	return bytes.LastIndexByte(s, '\n') + 1
}

// writeInside writes one "\n", or some text that has none, in a row that is as wide as the
// terminal. It returns how many bytes it has written.
func (p *page) writeInside(s []byte) int {
	if s[0] == '\n' {
		p.newline()
		return 1
	}
	r := p.cursor()
	r.toCells()
	room := p.width - r.col
	if s[0] == '\t' {
		if (r.col/tabWidth+1)*tabWidth < p.width {
			r.tab()
		} else {
			p.moveTo(p.width - 1)
		}
		return 1
	}
	n := asciiLen(s)
	if n == 0 {
		c, size := utf8.DecodeRune(s)
		if width := runeWidth(c); width > room && r.col > 0 {
			p.wrap()
			return 0
		}
		n = size
	} else if n = min(n, room); n <= 0 {
		p.wrap()
		return 0
	}
	for end := n; end > 0; {
		k := r.putFirst(s[n-end : n])
		end -= k
	}
	if r.col >= p.width {
		r.wraps = false
	}
	return n
}

// wrap moves the cursor to the start of the next row, because the text goes on there.
func (p *page) wrap() {
	r := p.cursor()
	r.wraps = true
	p.down()
	p.cursor().home()
	if p.cursor() == r { // there is no row below
		r.wraps = false
	}
}

// newline ends the line.
func (p *page) newline() {
	r := p.cursor()
	r.ended = true
	if p.isLast() && max(len(r.text), len(r.cells)) > p.width {
		p.bound()
	}
	p.down()
	p.cursor().home()
}

// endLine ends the line if there is something on it.
func (p *page) endLine() {
	if p.cursor().isEmpty() {
		p.cursor().home()
	} else {
		p.newline()
	}
}

// down moves the cursor to the next row. If there is none, the text scrolls up.
func (p *page) down() {
	switch {
	case p.bottom > 0 && p.at == p.bottom:
		p.scrollRegion(1)
	case !p.isLast():
		p.cursor().pack()
		p.at++
	case p.bottom == 0:
		p.cursor().pack()
		if len(p.rows) >= p.height {
			p.finish(1 + len(p.rows) - p.height)
		}
		p.rows = append(p.rows, p.newRow())
		p.at = len(p.rows) - 1
		p.topKnown = p.topKnown || len(p.rows) == p.height
	}
}

// bound makes rows final if there is too much text in them.
func (p *page) bound() {
	size := 0
	for i := len(p.rows) - 1; i >= 0; i-- {
		if size += len(p.rows[i].visible()); size > maxOpen {
			p.finish(min(i+1, len(p.rows)-1))
			return
		}
	}
}

// finish makes the first n rows final.
func (p *page) finish(n int) {
	if n <= 0 {
		return
	}
	for i, r := range p.rows[:n] {
		begin := len(p.out)
		if !r.void() {
			p.out = append(p.out, r.visible()...)
			if !r.wraps || i == len(p.rows)-1 {
				p.out = append(p.out, '\n')
			}
		}
		p.noteFinal(r, begin, len(p.out))
		if r.wraps && i < len(p.rows)-1 { // the rest of the line stays the one that was marked
			p.rows[i+1].id, p.rows[i+1].marked = r.id, r.marked
		}
	}
	p.recycle(p.rows[:n]...)
	p.rows = slices.Delete(p.rows, 0, n)
	if p.at -= n; p.at < 0 {
		p.at = 0
		if len(p.rows) > 0 {
			p.cursor().home()
		}
	}
}

// noteFinal notes where the text of a row is in out, if the row is marked.
func (p *page) noteFinal(r *row, begin, end int) {
	if r.marked && end > begin {
		p.finals = append(p.finals, Final{r.id, begin, end})
	}
}

// shorten makes the first half of the last line final if it has become too long.
func (p *page) shorten() {
	r := p.cursor()
	if len(r.text) < maxLine && len(r.cells) < maxLine {
		return
	}
	p.finish(len(p.rows) - 1)
	begin, columns := len(p.out), 0
	p.out, columns = r.shorten(p.out)
	p.noteFinal(r, begin, len(p.out))
	if p.saved.id == r.id {
		p.saved.col = max(p.saved.col-columns, 0)
	}
}

// lines calls yield with each line of the rows: with its id and its text, which ends with "\n"
// unless it is the last and has not been ended. buf is the buffer for the text; lines returns it.
func (p *page) lines(buf []byte, yield func(id uint64, text []byte) bool) []byte {
	last := len(p.rows) - 1
	for last >= 0 && p.rows[last].void() {
		last--
	}
	for i := 0; i <= last; i++ {
		if p.rows[i].void() {
			continue
		}
		id := p.rows[i].id
		buf = append(buf[:0], p.rows[i].visible()...)
		for ; p.rows[i].wraps && i < last && !p.rows[i+1].void(); i++ {
			buf = append(buf, p.rows[i+1].visible()...)
		}
		if i < last || p.rows[i].ended {
			buf = append(buf, '\n')
		}
		if !yield(id, buf) {
			break
		}
	}
	return buf
}

// isEmpty reports whether nothing has been printed.
func (p *page) isEmpty() bool {
	return len(p.out) == 0 && !slices.ContainsFunc(p.rows, func(r *row) bool { return !r.void() })
}
