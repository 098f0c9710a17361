package terminal

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hinshun/vt10x"
)

const maxSize = 1024 // of rows and columns: a cell takes 32 bytes in vt10x

// Render returns what a terminal of that size shows after raw. lines has one string for each row,
// from the top, without trailing spaces. row and col are the cursor's position, from 0. Sizes below
// 1 mean 1, and sizes above 1024 mean 1024.
//
// Raw may be the end of a longer stream, as a Tail keeps it. The result is right if the program has
// drawn the whole screen within raw. A partial rune at the start of raw is dropped. If raw leaves
// the alternate screen before it enters it, Render starts on the alternate screen.
//
// On the normal screen, "\n" moves the cursor to the start of the next line, although ONLCR is off:
// programs that print lines expect that. On the alternate screen it moves the cursor straight down,
// because programs there set the modes that they expect.
func Render(raw []byte, rows, cols int) (lines []string, row, col int) {
	rows, cols = min(max(rows, 1), maxSize), min(max(cols, 1), maxSize)
	f := filter{
		vt:   vt10x.New(vt10x.WithSize(cols, rows)), // it writes its answers to io.Discard
		rows: rows,
		cols: cols,
	}
	if startsOnAlternate(raw) {
		f.switchScreen(true, 1049)
	}
	f.write(skipPartialRune(raw))
	f.flush()

	lines = make([]string, rows)
	for y := range lines {
		lines[y] = f.rowText(y)
	}
	cur := f.vt.Cursor()
	return lines, cur.Y, cur.X
}

var screenMode = regexp.MustCompile(`\x1b\[\?(?:47|1047|1049)[hl]`)

// startsOnAlternate reports whether raw leaves the alternate screen before it enters it.
func startsOnAlternate(raw []byte) bool {
	m := screenMode.Find(raw)
	return len(m) > 0 && m[len(m)-1] == 'l'
}

// skipPartialRune returns raw without the partial rune at its start.
func skipPartialRune(raw []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && len(raw) > 0 && !utf8.RuneStart(raw[0]); i++ {
		raw = raw[1:]
	}
	return raw
}

// rowText returns the text of a row.
func (f *filter) rowText(y int) string {
	var b strings.Builder
	for x := 0; x < f.cols; x++ {
		r := f.vt.Cell(x, y).Char
		text := f.textOf(r)
		first, _ := utf8.DecodeRuneInString(text)
		whole := x+1 < f.cols && f.vt.Cell(x+1, y).Char == secondHalf
		switch wide := runeWidth(first) == 2; {
		case r == secondHalf, wide && !whole: // one half of a wide rune has been overwritten
			text = " "
		case wide:
			x++
		}
		b.WriteString(text)
	}
	return strings.TrimRight(b.String(), " ")
}
