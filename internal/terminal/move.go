package terminal

import "slices"

// layOut splits the rows that are wider than the terminal, as far as they are on the screen.
// Afterwards each row is one on the terminal.
func (p *page) layOut() {
	if p.laidOut {
		return
	}
	p.laidOut = true
	for i := len(p.rows) - 1; i >= 0 && len(p.rows)-i <= p.height; i-- {
		if r := p.rows[i]; !r.fits {
			p.split(i)
		}
	}
	p.finish(len(p.rows) - p.height)
	p.topKnown = p.topKnown || len(p.rows) == p.height
}

// split splits row i if it is wider than the terminal.
func (p *page) split(i int) {
	r := p.rows[i]
	r.fits = true
	if !r.inCells && len(r.text) <= p.width && !slices.Contains(r.text, '\t') {
		return
	}
	r.toCells()
	cells := r.cells[:r.cellsEnd()]
	ends := p.ends(cells)
	if above := len(ends) - p.height; above > 1 { // they are not on the screen: one row will do
		ends = ends[above-1:]
	}
	if len(ends) < 2 {
		if i != p.at {
			r.pack()
		} else {
			r.col = min(r.col, p.width)
		}
		return
	}
	col, written := r.col, max(r.written-1, 0)
	rows := make([]*row, 0, len(ends))
	at, atCol, begin := 0, 0, 0
	for n, end := range ends {
		piece := r
		if n > 0 {
			piece = p.newRow()
		}
		last := n == len(ends)-1
		if begin <= written {
			at, atCol = n, min(max(col-begin, 0), p.width)
		}
		piece.shown = appendCells(piece.shown[:0], cells[begin:end])
		piece.fits = true
		rows = append(rows, piece)
		begin = end
		if last {
			piece.ended, piece.wraps = r.ended, r.wraps
		}
	}
	for n, piece := range rows {
		text := piece.shown
		piece.shown = nil
		piece.reset()
		piece.text = append(piece.text, text...)
		if n < len(rows)-1 {
			piece.ended, piece.wraps = false, true
		}
	}
	p.rows = slices.Replace(p.rows, i, i+1, rows...)
	switch {
	case i == p.at:
		p.at += at
		p.arrive(atCol)
	case i < p.at:
		p.at += len(rows) - 1
	}
}

// ends returns where rows of the terminal's width end in cells.
func (p *page) ends(cells []cell) (ends []int) {
	for begin := 0; begin < len(cells); {
		end := min(begin+p.width, len(cells))
		for end < len(cells) && end > begin && cells[end].r == spanned {
			end--
		}
		if end == begin { // the character is wider than the terminal
			for end++; end < len(cells) && cells[end].r == spanned; {
				end++
			}
		}
		ends = append(ends, end)
		begin = end
	}
	return ends
}

// arrive puts the cursor in its row into a column.
func (p *page) arrive(col int) {
	if r := p.cursor(); col == 0 {
		r.home()
	} else {
		r.moveTo(col)
	}
}

// moveTo moves the cursor to a column.
func (p *page) moveTo(col int) {
	if p.inside() {
		col = min(col, p.width-1)
	}
	p.cursor().moveTo(col)
}

// move moves the cursor by n columns.
func (p *page) move(n int) { p.moveTo(p.cursor().column() + n) }

// column returns the column of the cursor for a move to another row.
func (p *page) column() int {
	p.layOut()
	return min(p.cursor().column(), p.width-1)
}

// goTo moves the cursor to a row and a column, or to the nearest on the screen.
func (p *page) goTo(i, col int) {
	if i < 0 && !p.topKnown {
		n := min(-i, p.height-len(p.rows))
		p.insert(0, n)
		i += n
	}
	i = min(max(i, 0), p.height-1)
	if i >= len(p.rows) {
		p.insert(len(p.rows), i+1-len(p.rows))
	}
	if i != p.at {
		p.cursor().pack()
		p.at = i
	}
	p.arrive(min(col, p.width-1))
}

// insert inserts n void rows before row i, with no regard to how many rows the screen has.
func (p *page) insert(i, n int) {
	if n <= 0 {
		return
	}
	rows := make([]*row, n)
	for j := range rows {
		rows[j] = p.newRow()
		rows[j].fits = true
	}
	p.rows = slices.Insert(p.rows, i, rows...)
	if i <= p.at {
		p.at += n
	}
	p.topKnown = p.topKnown || len(p.rows) >= p.height
}

// remove removes the rows from i to j, and their text.
func (p *page) remove(i, j int) {
	p.recycle(p.rows[i:j]...)
	p.rows = slices.Delete(p.rows, i, j)
}

// moveRows moves the cursor by n rows. It does not leave the scrolling region.
func (p *page) moveRows(n, col int) {
	i := p.at + n
	if p.bottom > 0 && p.at <= p.bottom {
		i = min(i, p.bottom)
	}
	if p.bottom > 0 && p.at >= p.top {
		i = max(i, p.top)
	}
	p.goTo(i, col)
}

// assumeTop makes rows[0] the first row of the screen. If that is not known, the program's rows
// count as being just above the last row. The last row stays free, because many programs keep a
// status there.
func (p *page) assumeTop() {
	p.layOut()
	if !p.topKnown {
		p.insert(0, p.height-len(p.rows)-1)
		p.insertBelow(len(p.rows), p.height-len(p.rows))
		p.topKnown = true
	}
}

// goToRow moves the cursor to a row of the screen and to a column.
func (p *page) goToRow(i, col int) {
	p.assumeTop()
	p.goTo(i, col)
}

func (p *page) save() {
	r := p.cursor()
	col := r.column()
	r.plainIfEmpty()
	p.saved = savedCursor{r.id, p.at, col}
}

// restore moves the cursor to where it was saved: to that row, even if the text has scrolled since.
func (p *page) restore() {
	if p.saved.id == p.cursor().id {
		p.moveTo(p.saved.col)
		return
	}
	if p.saved.id == 0 {
		p.goToRow(0, 0)
		return
	}
	i := slices.IndexFunc(p.rows, func(r *row) bool { return r.id == p.saved.id })
	if i < 0 {
		i = p.saved.at
	}
	p.layOut()
	p.goTo(min(i, len(p.rows)-1), p.saved.col)
}

// reverse moves the cursor up. At the top, the text scrolls down.
func (p *page) reverse() {
	col := p.column()
	if p.topKnown && p.at == p.top {
		p.scrollDown(1)
	} else {
		p.moveRows(-1, col)
	}
}

// insertCells is ICH. What it moves out of a row that has a width is lost.
func (p *page) insertCells(n int) {
	p.cursor().insertCells(n)
	if p.inside() {
		p.cursor().truncate(p.width)
	} else {
		p.cursor().fits, p.laidOut = false, false
		p.shorten()
	}
}

// reset is RIS: it clears the screen and moves the cursor home.
func (p *page) reset() {
	p.top, p.bottom, p.saved = 0, 0, savedCursor{}
	p.goToRow(0, 0)
	p.clear()
}
