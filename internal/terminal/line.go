package terminal

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

const (
	maxLine = 64 << 10 // how many bytes, or cells, of a line can still be written over
	// columns: how far beyond the end of the line the cursor, or an edit, can get
	maxGap   = 4096
	tabWidth = 8
)

// A line is the line that the cursor is on. What is written to it is UTF-8. Most lines are only
// written to at their end, and stay plain text. At the first write elsewhere, a line is taken apart
// into cells; the next line is plain again.
type line struct {
	out    []byte // text that can no longer change
	text   []byte // a plain line
	atHome bool   // of a plain line: the cursor is at its begin, not at its end
	edited bool   // the line is in cells, not in text
	cells  []cell
	col    int // the cursor, of an edited line
	saved  int // 1 + the column saved on this line, 0 if there is none
	shown  []byte
}

// append writes s at the cursor. Each "\n" in s ends a line, which goes to out.
func (l *line) append(s []byte) {
	for len(s) > 0 {
		switch {
		case !l.edited && !l.atHome:
			s = l.appendPlain(s)
		case s[0] == '\n':
			l.newline()
			s = s[1:]
		default:
			n := bytes.IndexByte(s, '\n')
			if n < 0 {
				n = len(s)
			}
			s = s[l.write(s[:n]):]
		}
		l.shorten()
	}
}

// appendPlain appends to a plain line, and returns the rest of s if the line gets too long.
func (l *line) appendPlain(s []byte) []byte {
	if bytes.IndexByte(s, '\n') >= 0 { // mostly there is none, and LastIndexByte is slow
		i := bytes.LastIndexByte(s, '\n')
		l.out = append(l.out, l.text...)
		l.out = append(l.out, s[:i+1]...)
		l.reset()
		s = s[i+1:]
	}
	n := min(len(s), maxLine-len(l.text))
	l.text = append(l.text, s[:n]...)
	return s[n:]
}

// write writes s, which has no "\n", at the cursor of an edited line, as far as that gets no longer
// than maxLine.
func (l *line) write(s []byte) (n int) {
	l.edit()
	for n < len(s) && len(l.cells) < maxLine {
		n += l.put(s[n:])
	}
	return n
}

// shorten moves the older part of a line that has got too long to out. At which lengths depends on
// the line alone, not on the pieces in which it came.
func (l *line) shorten() {
	const cut = maxLine / 2
	for len(l.text) >= maxLine {
		n := cut
		for !utf8.RuneStart(l.text[n]) {
			n--
		}
		l.out = append(l.out, l.text[:n]...)
		l.text = append(l.text[:0], l.text[n:]...)
	}
	for len(l.cells) >= maxLine {
		n := cut
		for l.cells[n].r == spanned {
			n--
		}
		l.out = appendCells(l.out, l.cells[:n])
		l.cells = slices.Delete(l.cells, 0, n)
		l.col = max(l.col-n, 0)
		if l.saved > 0 {
			l.saved = max(l.saved-n, 1)
		}
	}
}

// show returns the text of the line.
func (l *line) show() []byte {
	if !l.edited {
		return l.text
	}
	end := len(l.cells)
	for end > 0 && l.cells[end-1] == (cell{}) {
		end--
	}
	l.shown = appendCells(l.shown[:0], l.cells[:end])
	return l.shown
}

// newline ends the line.
func (l *line) newline() {
	l.out = append(l.out, l.show()...)
	l.out = append(l.out, '\n')
	l.reset()
}

// end ends the line if there is something on it. If not, it begins anew.
func (l *line) end() {
	if len(l.show()) > 0 {
		l.newline()
	}
	l.reset()
}

// reset makes the line empty and plain.
func (l *line) reset() {
	l.text, l.cells = l.text[:0], l.cells[:0]
	l.atHome, l.edited, l.col, l.saved = false, false, 0, 0
}

// edit takes a plain line apart.
func (l *line) edit() {
	if l.edited {
		return
	}
	l.edited, l.cells, l.col = true, l.cells[:0], 0
	for s := l.text; len(s) > 0; {
		s = s[l.put(s):]
	}
	if l.atHome {
		l.col = 0
	}
	l.text, l.atHome = l.text[:0], false
}

// settle makes an edited line plain again if nothing is left of it.
func (l *line) settle() {
	if l.edited && len(l.cells) == 0 && l.col == 0 {
		l.edited = false
	}
}

// home moves the cursor to column 0.
func (l *line) home() {
	l.col, l.atHome = 0, !l.edited && len(l.text) > 0
	l.settle()
}

func (l *line) column() int {
	l.edit()
	return l.col
}

// moveTo moves the cursor to a column, but not farther than column maxGap or the line's end,
// whichever is farther.
func (l *line) moveTo(col int) {
	l.edit()
	l.col = min(max(col, 0), max(len(l.cells), maxGap))
	l.settle()
}

// move moves the cursor by n columns.
func (l *line) move(n int) { l.moveTo(l.column() + n) }

// save remembers the cursor's column, for as long as the line lasts.
func (l *line) save() {
	l.saved = 1 + l.column()
	l.settle()
}

// restore moves the cursor back to the saved column. It reports whether that was saved on this
// line.
func (l *line) restore() bool {
	if l.saved > 0 {
		l.moveTo(l.saved - 1)
	}
	return l.saved > 0
}

// erase erases from the cursor to the end (mode 0), from the begin to the cursor (1), or all (2).
func (l *line) erase(mode int) {
	if !l.edited && !l.atHome && mode == 0 {
		return // compilers and grep write it after each colour
	}
	l.edit()
	switch mode {
	case 0:
		l.split(l.col)
		l.cells = l.cells[:min(l.col, len(l.cells))]
	case 1:
		l.split(l.col + 1)
		clear(l.cells[:min(l.col+1, len(l.cells))])
	case 2:
		l.cells = l.cells[:0]
	}
	l.settle()
}

// eraseCells erases n cells from the cursor on.
func (l *line) eraseCells(n int) {
	if from, to := l.section(n); from < to {
		clear(l.cells[from:to])
	}
}

// deleteCells takes n cells out at the cursor; the rest moves left.
func (l *line) deleteCells(n int) {
	if from, to := l.section(n); from < to {
		l.untab(to)
		l.cells = slices.Delete(l.cells, from, to)
	}
}

// insertCells inserts n blanks at the cursor; the rest moves right.
func (l *line) insertCells(n int) {
	if from, to := l.section(0); from == to && from < len(l.cells) {
		l.untab(from)
		n = min(n, maxGap)
		l.cells = slices.Grow(l.cells, n)[:len(l.cells)+n]
		copy(l.cells[from+n:], l.cells[from:])
		clear(l.cells[from : from+n])
		l.shorten()
	}
}

// section edits the line, and returns the range of the n cells from the cursor on. No character
// crosses its borders.
func (l *line) section(n int) (from, to int) {
	l.edit()
	l.split(l.col)
	l.split(l.col + n)
	return min(l.col, len(l.cells)), min(l.col+n, len(l.cells))
}

// repeat writes the character before the cursor n more times.
func (l *line) repeat(n int) {
	l.edit()
	i := l.col - 1
	for i > 0 && i < len(l.cells) && l.cells[i].r == spanned {
		i--
	}
	if i < 0 || i >= len(l.cells) || l.cells[i].r <= blank || l.cells[i].r == '\t' {
		return
	}
	l.append(bytes.Repeat(appendCells(nil, l.cells[i:i+1]), min(n, maxGap)))
}
