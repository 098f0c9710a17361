package terminal

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

const (
	maxLine  = 8 << 10 // how many bytes, or cells, of a line can still be written over
	maxGap   = maxSize // how many columns beyond the end of the line a cursor or an edit can reach
	tabWidth = 8
)

// A line is the text of a row, which may be longer than the terminal is wide. It is UTF-8. Most
// lines are only written to at their end: they stay plain text. At the first write elsewhere, a
// line is converted to cells, until the cursor leaves it.
type line struct {
	text    []byte // a plain line
	atHome  bool   // the cursor of a plain line is at its start, not at its end
	inCells bool   // the line is in cells, not in text
	cells   []cell
	col     int    // the cursor's column, for a line in cells
	written int    // the column behind the last write, for a line in cells
	shown   []byte // the buffer of visible
}

// write writes s, which has no "\n", at the cursor, in cells. It stops when the line has maxLine
// cells, and returns how many bytes it has written.
func (l *line) write(s []byte) (n int) {
	l.toCells()
	for n < len(s) && len(l.cells) < maxLine {
		n += l.putFirst(s[n:])
	}
	return n
}

// shorten moves the first half of a line that has become too long to dst. Where it cuts depends
// only on the line, not on the pieces in which the line came. columns is how many columns it has
// cut off a line in cells.
func (l *line) shorten(dst []byte) (out []byte, columns int) {
	const cut = maxLine / 2
	for len(l.text) >= maxLine {
		n := cut
		for !utf8.RuneStart(l.text[n]) {
			n--
		}
		dst = append(dst, l.text[:n]...)
		l.text = append(l.text[:0], l.text[n:]...)
	}
	for len(l.cells) >= maxLine {
		n := cut
		for l.cells[n].r == spanned {
			n--
		}
		dst = appendCells(dst, l.cells[:n])
		l.cells = slices.Delete(l.cells, 0, n)
		l.col, l.written = max(l.col-n, 0), max(l.written-n, 0)
		columns += n
	}
	return dst, columns
}

// visible returns the text of the line. It is valid until the next call of a method.
func (l *line) visible() []byte {
	if !l.inCells {
		return l.text
	}
	l.shown = appendCells(l.shown[:0], l.cells[:l.cellsEnd()])
	return l.shown
}

// cellsEnd returns how many cells are left of the blanks at the end of a line in cells.
func (l *line) cellsEnd() int {
	end := len(l.cells)
	for end > 0 && l.cells[end-1] == (cell{}) {
		end--
	}
	return end
}

// isEmpty reports whether there is nothing on the line.
func (l *line) isEmpty() bool { return len(l.text) == 0 && (!l.inCells || l.cellsEnd() == 0) }

// pack makes a line plain that the cursor leaves.
func (l *line) pack() {
	if l.inCells {
		text := appendCells(l.text[:0], l.cells[:l.cellsEnd()])
		l.reset()
		l.text = text
	}
	l.atHome = false
}

// reset makes the line empty and plain.
func (l *line) reset() {
	l.text, l.cells = l.text[:0], l.cells[:0]
	l.atHome, l.inCells, l.col, l.written = false, false, 0, 0
}

// toCells converts a plain line to cells.
func (l *line) toCells() {
	if l.inCells {
		return
	}
	l.inCells, l.cells, l.col = true, l.cells[:0], 0
	for s := l.text; len(s) > 0; {
		s = s[l.putFirst(s):]
	}
	l.written = l.col
	if l.atHome {
		l.col = 0
	}
	l.text, l.atHome = l.text[:0], false
}

// plainIfEmpty makes a line in cells plain if it is empty and the cursor is at its start.
func (l *line) plainIfEmpty() {
	if l.inCells && len(l.cells) == 0 && l.col == 0 {
		l.inCells = false
	}
}

// home moves the cursor to column 0.
func (l *line) home() {
	l.col, l.atHome = 0, !l.inCells && len(l.text) > 0
	l.plainIfEmpty()
}

func (l *line) column() int {
	if !l.inCells && (l.atHome || len(l.text) == 0) {
		return 0
	}
	l.toCells()
	return l.col
}

// moveTo moves the cursor to a column, at most to column maxGap or to the end of the line,
// whichever is farther.
func (l *line) moveTo(col int) {
	l.toCells()
	l.col = min(max(col, 0), max(len(l.cells), maxGap))
	l.plainIfEmpty()
}

// erase erases from the cursor to the end (mode 0), from the start to the cursor (1), or all (2).
func (l *line) erase(mode int) {
	if !l.inCells && !l.atHome && mode == 0 {
		return // a common case: compilers and grep write it after each colour
	}
	if !l.inCells && (mode == 0 || mode == 2) && (l.atHome || len(l.text) == 0) {
		l.reset()
		return
	}
	l.toCells()
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
	l.plainIfEmpty()
}

// eraseCells erases n cells from the cursor on.
func (l *line) eraseCells(n int) {
	if from, to := l.cellRange(n); from < to {
		clear(l.cells[from:to])
	}
}

// deleteCells deletes n cells at the cursor. The rest of the line moves left.
func (l *line) deleteCells(n int) {
	if from, to := l.cellRange(n); from < to {
		l.blankTabs(to)
		l.cells = slices.Delete(l.cells, from, to)
	}
}

// insertCells inserts n blanks at the cursor. The rest of the line moves right.
func (l *line) insertCells(n int) {
	if from, to := l.cellRange(0); from == to && from < len(l.cells) {
		l.blankTabs(from)
		n = min(n, maxGap)
		l.cells = slices.Grow(l.cells, n)[:len(l.cells)+n]
		copy(l.cells[from+n:], l.cells[from:])
		clear(l.cells[from : from+n])
	}
}

// cellRange converts the line to cells, and returns the range of the n cells from the cursor on. It
// blanks characters that are only partly in the range.
func (l *line) cellRange(n int) (from, to int) {
	l.toCells()
	l.split(l.col)
	l.split(l.col + n)
	return min(l.col, len(l.cells)), min(l.col+n, len(l.cells))
}

// repeated returns the character before the cursor, n times, without its marks.
func (l *line) repeated(n int) []byte {
	l.toCells()
	i := l.col - 1
	for i > 0 && i < len(l.cells) && l.cells[i].r == spanned {
		i--
	}
	if i < 0 || i >= len(l.cells) || l.cells[i].r <= blank || l.cells[i].r == '\t' {
		return nil
	}
	return bytes.Repeat(utf8.AppendRune(nil, l.cells[i].r), n)
}

// truncate cuts the line to n columns.
func (l *line) truncate(n int) {
	if l.inCells && len(l.cells) > n {
		l.split(n)
		l.cells = l.cells[:n]
	}
}
