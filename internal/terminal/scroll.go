package terminal

import "slices"

// How a page erases, inserts, deletes and scrolls rows.

// eraseLine is EL.
func (p *page) eraseLine(mode int) {
	r := p.cursor()
	atEnd := !r.inCells && !r.atHome && len(r.text) > 0 // nothing is behind the cursor
	if mode == 2 || mode == 0 && !atEnd {
		r.wraps = false
		r.ended = r.ended && mode == 0 && r.column() > 0
	}
	r.erase(mode)
}

// eraseScreen is ED.
func (p *page) eraseScreen(mode int) {
	switch mode {
	case 0:
		if p.topKnown && p.at == 0 && p.cursor().column() == 0 {
			p.clear()
			return
		}
		below := len(p.rows) - p.at - 1
		p.remove(p.at+1, len(p.rows))
		if p.bottom > 0 {
			p.insert(len(p.rows), below)
		}
		p.eraseLine(0)
	case 1:
		p.layOut()
		for _, r := range p.rows[:p.at] {
			r.reset()
			r.ended, r.wraps = false, false
		}
		p.eraseLine(1)
	case 2:
		p.clear()
	}
}

// clear clears the screen. What was on the screen when it was cleared for the first time was
// printed as a log, and remains in the log. After that, the program draws.
func (p *page) clear() {
	col := p.column()
	if p.cleared {
		p.remove(0, len(p.rows))
	} else {
		at := p.at
		p.finish(len(p.rows))
		p.at = at
	}
	at := p.at
	p.at = 0
	p.rows = p.rows[:0]
	p.cleared, p.topKnown = true, false
	n := at + 1
	if p.bottom > 0 {
		n = p.height
	}
	p.insert(0, n)
	p.topKnown, p.at = true, at
	p.arrive(col)
}

// setRegion sets the scrolling region to the rows from top to bottom, and moves the cursor home.
func (p *page) setRegion(top, bottom int) {
	top, bottom = max(top, 0), min(bottom, p.height-1)
	if top >= bottom {
		return
	}
	p.assumeTop()
	p.top, p.bottom = 0, 0
	if top > 0 || bottom < p.height-1 {
		p.insert(len(p.rows), p.height-len(p.rows))
		p.top, p.bottom = top, bottom
	}
	p.goTo(0, 0)
}

// region returns the first row of the region that scrolls, and the row behind it.
func (p *page) region() (top, end int) {
	if p.bottom > 0 {
		return p.top, p.bottom + 1
	}
	return 0, p.height
}

// scrollRegion moves the text of the scrolling region up by n rows. What scrolls off is final,
// because it could be read. The cursor stays where it is.
func (p *page) scrollRegion(n int) {
	p.assumeTop()
	top, end := p.region()
	p.insertBelow(len(p.rows), end-len(p.rows))
	n = min(n, end-top)
	at, col := p.at, p.column()
	p.cursor().pack()
	// The rows above the region stay.
	fixed := slices.Clone(p.rows[:top])
	p.rows = slices.Delete(p.rows, 0, top)
	p.rows[n-1].wraps = false
	p.at = n
	p.finish(n)
	p.rows = slices.Insert(p.rows, 0, fixed...)
	p.insertBelow(end-n, n)
	p.at = at
	p.arrive(col)
}

// insertBelow is insert without a move of the cursor.
func (p *page) insertBelow(i, n int) {
	at := p.at
	p.insert(i, n)
	p.at = at
}

// scrollDown moves the text of the scrolling region down by n rows. What is moved out of the region
// is lost.
func (p *page) scrollDown(n int) {
	p.assumeTop()
	at, col := p.at, p.column()
	p.cursor().pack()
	top, _ := p.region()
	p.openRows(top, n)
	p.at = at
	if p.at >= len(p.rows) {
		p.insert(len(p.rows), p.at+1-len(p.rows))
		p.at = at
	}
	p.arrive(col)
}

// insertRows is IL: it inserts n rows before that of the cursor.
func (p *page) insertRows(n int) {
	p.layOut()
	if top, end := p.region(); p.at < top || p.at >= end {
		return
	}
	p.cursor().pack()
	p.openRows(p.at, n)
	p.arrive(0)
}

// openRows inserts n rows before row i. At the end of the scrolling region, it removes as many as
// are too many.
func (p *page) openRows(i, n int) {
	_, end := p.region()
	if n = min(n, end-i); !p.topKnown {
		n = min(n, p.height-len(p.rows))
	}
	if i > 0 {
		p.rows[i-1].wraps = false
	}
	at := p.at
	p.insert(i, n)
	p.at = at
	if p.bottom > 0 {
		p.remove(end, end+n)
	} else if over := len(p.rows) - p.height; over > 0 {
		p.remove(len(p.rows)-over, len(p.rows))
	}
	p.unwrapLast(end)
}

// unwrapLast ends the line of the last row before end: its rest has been removed.
func (p *page) unwrapLast(end int) {
	if i := min(end, len(p.rows)) - 1; i >= 0 {
		p.rows[i].wraps = false
	}
}

// deleteRows is DL: it removes n rows from that of the cursor on.
func (p *page) deleteRows(n int) {
	p.layOut()
	top, end := p.region()
	if p.at < top || p.at >= end {
		return
	}
	n = min(n, min(end, len(p.rows))-p.at)
	p.cursor().pack()
	if p.at > 0 {
		p.rows[p.at-1].wraps = false
	}
	p.remove(p.at, p.at+n)
	if p.bottom > 0 {
		p.insertBelow(end-n, n)
	} else if p.at == len(p.rows) {
		p.insertBelow(p.at, 1)
	}
	p.arrive(0)
}
