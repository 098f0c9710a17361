package terminal

import (
	"slices"
	"unicode/utf8"
)

// A cell is one column of a line. A wide rune takes two cells, and a tab up to eight. The first
// cell holds the character, and the others are spanned.
type cell struct {
	r     rune   // or blank, or spanned
	marks string // combining marks, at most maxMarks bytes
}

const (
	blank   rune = 0  // never written to, or erased; a space, except at the end of the line
	spanned rune = -1 // belongs to the character in a cell before it

	maxMarks = 64
)

// appendCells appends the text of the cells.
func appendCells(dst []byte, cells []cell) []byte {
	for i := range cells {
		switch r := cells[i].r; {
		case r == blank:
			dst = append(dst, ' ')
		case r == spanned:
		default:
			dst = utf8.AppendRune(dst, r)
		}
		dst = append(dst, cells[i].marks...)
	}
	return dst
}

// putFirst writes the first character of s at the cursor. If s begins with ASCII characters, it
// writes all of these. It returns how many bytes it has written.
func (l *line) putFirst(s []byte) int {
	if n := min(asciiLen(s), max(maxLine-l.col, 1)); n > 0 {
		l.reserve(n)
		for i, c := range s[:n] {
			l.cells[l.col+i] = cell{r: rune(c)}
		}
		l.col += n
		l.written = l.col
		return n
	}
	if s[0] == '\t' {
		l.tab()
		return 1
	}
	r, size := utf8.DecodeRune(s)
	width := runeWidth(r)
	if width == 0 && l.addMark(s[:size]) {
		return size
	}
	l.putCell(cell{r: r}, max(width, 1))
	return size
}

// putCell writes a character at the cursor. width is how many cells it takes.
func (l *line) putCell(c cell, width int) {
	l.reserve(width)
	l.cells[l.col] = c
	for i := 1; i < width; i++ {
		l.cells[l.col+i] = cell{r: spanned}
	}
	l.col += width
	l.written = l.col
}

// addMark adds a combining mark to the character before the cursor. It reports whether there is
// such a character.
func (l *line) addMark(m []byte) bool {
	i := l.col - 1
	if i < 0 || i >= len(l.cells) {
		return false
	}
	for i > 0 && l.cells[i].r == spanned {
		i--
	}
	c := &l.cells[i]
	if c.r == blank {
		c.r = ' '
	}
	if len(c.marks)+len(m) <= maxMarks {
		c.marks += string(m)
	}
	return true
}

// tab moves the cursor to the next tab stop. If that is beyond the end of the line, it appends a
// tab to the line.
func (l *line) tab() {
	stop := (l.col/tabWidth + 1) * tabWidth
	if end := len(l.cells); stop > end {
		at := max(l.col, end)
		l.col = at
		l.putCell(cell{r: '\t'}, stop-at)
	}
	l.col = stop
}

// reserve prepares the n cells from the cursor on to be written: it makes them exist, and blanks
// characters that are only partly within them.
func (l *line) reserve(n int) {
	end := l.col + n
	l.split(l.col)
	l.split(end)
	if missing := end - len(l.cells); missing > 0 {
		have := len(l.cells)
		l.cells = slices.Grow(l.cells, missing)[:end]
		clear(l.cells[have:])
	}
}

// split blanks the character that has cells on both sides of the border before cell i, if there is
// one. A terminal does that to a wide rune when one half of it is overwritten.
func (l *line) split(i int) {
	if i <= 0 || i >= len(l.cells) || l.cells[i].r != spanned {
		return
	}
	from := i
	for l.cells[from].r == spanned {
		from--
	}
	l.blank(from)
}

// blankTabs turns the tabs from cell i on into blanks. It is called before the cells are moved,
// because a tab's width depends on its place.
func (l *line) blankTabs(i int) {
	for ; i < len(l.cells); i++ {
		if l.cells[i].r == '\t' {
			l.blank(i)
		}
	}
}

// blank erases the character that starts in cell i.
func (l *line) blank(i int) {
	l.cells[i] = cell{}
	for i++; i < len(l.cells) && l.cells[i].r == spanned; i++ {
		l.cells[i] = cell{}
	}
}
