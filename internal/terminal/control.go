package terminal

// rewrites reports whether a complete sequence may rewrite text of other rows, or let the text
// behind it do so.
func (c *Cleaner) rewrites(e event) bool {
	if e == escEnded {
		return c.seq.final == 'M' || c.seq.final == '8' || c.seq.final == 'c'
	}
	switch c.seq.final {
	case 'A', 'F', 'H', 'f', 'd', 'J', 'L', 'M', 'T', 'u':
		return true
	}
	return false
}

// handle handles a complete sequence.
func (c *Cleaner) handle(e event) {
	if e == escEnded {
		c.handleEscape()
	} else {
		c.handleCSI()
	}
}

func (c *Cleaner) handleControl(b byte) {
	if b == esc {
		c.seq.begin()
		return
	}
	p := c.current()
	switch b {
	case '\n', '\t':
		p.write([]byte{b})
	case '\r':
		p.cursor().home()
	case bs:
		p.move(-1)
	case vt, ff:
		p.endLine()
	}
	c.leaveIfUndrawn()
}

func (c *Cleaner) handleEscape() {
	if c.seq.inter != 0 {
		return // it selects a character set
	}
	p := c.current()
	switch final := c.seq.final; {
	case final == 'E' || final == 'D' && c.alt: // NEL, IND
		p.newline()
		c.leaveIfUndrawn()
	case final == 'c': // RIS
		c.switchScreen(false)
		c.page.reset()
	case c.alt && (final == 'M' || final == '8'):
		c.changeScreen()
	case c.alt:
	case final == '7': // DECSC
		p.save()
	case final == '8': // DECRC
		p.restore()
	case final == 'D': // IND
		col := p.column()
		p.down()
		p.arrive(col)
	case final == 'M': // RI
		p.reverse()
	}
}

func (c *Cleaner) handleCSI() {
	if on, ok := c.seq.screenSwitch(); ok {
		c.switchScreen(on)
	}
	c.recordQuery()
	if c.seq.prefix != 0 || c.seq.inter != 0 {
		return
	}
	s, p := &c.seq, c.current()
	l := p.cursor()
	n := s.arg(0, 1)
	switch s.final {
	case 'C', 'a': // CUF, HPR
		p.move(n)
	case 'D': // CUB
		p.move(-n)
	case 'G', '`': // CHA, HPA
		p.moveTo(n - 1)
	case 'I': // CHT
		p.moveTo((l.column()/tabWidth + n) * tabWidth)
	case 'Z': // CBT
		p.moveTo(((l.column()+tabWidth-1)/tabWidth - n) * tabWidth)
	case 'K': // EL
		p.eraseLine(s.arg(0, 0))
	case 'X': // ECH
		l.eraseCells(n)
	case 'P': // DCH
		l.deleteCells(n)
	case '@': // ICH
		p.insertCells(n)
	case 'b': // REP
		p.write(l.repeated(min(n, p.width))) // no program draws more than a row
	default:
		c.handleRowCSI()
	}
}

// handleRowCSI handles a control sequence that moves the cursor to another row, or changes other
// rows.
func (c *Cleaner) handleRowCSI() {
	s, p := &c.seq, &c.page
	n := s.arg(0, 1)
	switch {
	case c.alt:
		c.handleAlternate()
	case s.final == 'A': // CUU
		p.moveRows(-n, p.column())
	case s.final == 'B' || s.final == 'e': // CUD, VPR
		p.moveRows(n, p.column())
	case s.final == 'E': // CNL
		p.layOut()
		p.moveRows(n, 0)
	case s.final == 'F': // CPL
		p.layOut()
		p.moveRows(-n, 0)
	case s.final == 'H' || s.final == 'f': // CUP, HVP
		p.goToRow(n-1, s.arg(1, 1)-1)
	case s.final == 'd': // VPA
		p.goToRow(n-1, p.column())
	case s.final == 'J': // ED
		p.eraseScreen(s.arg(0, 0))
	case s.final == 'L': // IL
		p.insertRows(n)
	case s.final == 'M': // DL
		p.deleteRows(n)
	case s.final == 'S': // SU
		p.scrollRegion(n)
	case s.final == 'T' && len(s.params) < 2: // SD; with more parameters it starts mouse tracking
		p.scrollDown(n)
	case s.final == 'r': // DECSTBM
		p.setRegion(n-1, s.arg(1, maxParam)-1)
	case s.final == 's' && len(s.params) == 0:
		p.save()
	case s.final == 'u' && len(s.params) == 0:
		p.restore()
	}
}

// handleAlternate handles a control sequence as handleRowCSI does, on the alternate screen.
func (c *Cleaner) handleAlternate() {
	switch c.seq.final {
	case 'J':
		if mode := c.seq.arg(0, 0); mode < 2 {
			c.undrawn.cursor().erase(mode)
			return
		}
		c.changeScreen()
	case 'A', 'B', 'E', 'F', 'H', 'f', 'd', 'e', 'L', 'M', 'S', 'T', 'r', 'u':
		c.changeScreen()
	}
}
