package terminal

import (
	"slices"
	"unicode/utf8"
)

// A cell is one column of an edited line. A wide rune takes two cells, a tab up to eight: the first
// holds it, and the others are spanned.
type cell struct {
	r     rune   // or blank, or spanned
	marks string // combining marks, at most maxMarks bytes
}

const (
	blank   rune = 0 // never written to, or erased: shows as a space, but not at the line's end
	spanned rune = -1

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

// put writes the first character of s at the cursor, or all ASCII that s begins with, and returns
// how many bytes it wrote.
func (l *line) put(s []byte) int {
	if n := min(asciiLen(s), max(maxLine-l.col, 1)); n > 0 {
		l.claim(n)
		for i, c := range s[:n] {
			l.cells[l.col+i] = cell{r: rune(c)}
		}
		l.col += n
		return n
	}
	if s[0] == '\t' {
		l.tab()
		return 1
	}
	r, size := utf8.DecodeRune(s)
	width := runeWidth(r)
	if width == 0 && l.mark(s[:size]) {
		return size
	}
	l.set(cell{r: r}, max(width, 1))
	return size
}

// set writes a character of some width at the cursor.
func (l *line) set(c cell, width int) {
	l.claim(width)
	l.cells[l.col] = c
	for i := 1; i < width; i++ {
		l.cells[l.col+i] = cell{r: spanned}
	}
	l.col += width
}

// mark adds a combining mark to the character before the cursor, if there is one.
func (l *line) mark(m []byte) bool {
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

// tab moves the cursor to the next tab stop. If that is beyond the line's end, the line also gets a
// tab there.
func (l *line) tab() {
	stop := (l.col/tabWidth + 1) * tabWidth
	if end := len(l.cells); stop > end {
		at := max(l.col, end)
		l.col = at
		l.set(cell{r: '\t'}, stop-at)
	}
	l.col = stop
}

// claim makes sure that the n cells from the cursor on exist, and that no character is partly in
// them and partly outside.
func (l *line) claim(n int) {
	end := l.col + n
	l.split(l.col)
	l.split(end)
	if missing := end - len(l.cells); missing > 0 {
		have := len(l.cells)
		l.cells = slices.Grow(l.cells, missing)[:end]
		clear(l.cells[have:])
	}
}

// split blanks a character that has cells both before cell i and from it on: a terminal does so
// with a wide rune when one half of it is overwritten.
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

// untab turns the tabs from cell i on into blanks: they are about to be moved, and would change
// their width.
func (l *line) untab(i int) {
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
