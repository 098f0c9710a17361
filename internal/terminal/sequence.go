package terminal

// C0 controls, and DEL, that mean something here.
const (
	bel = 0x07
	bs  = 0x08
	vt  = 0x0b
	ff  = 0x0c
	so  = 0x0e
	si  = 0x0f
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

// A sequence parses the escape sequence that is coming in, if there is one. It follows the state
// machine of the VT500 (https://vt100.net/emu/dec_ansi_parser) and xterm, with one difference: a
// broken sequence must not swallow the rest of the output. So strings other than sixel images,
// which have lines, end with the line, and all strings after maxString bytes.
//
// The decoder of charmbracelet/x/ansi, as of v0.11.9, cannot be used: it panics at the 33rd
// parameter, lets large parameters overflow, mistakes bytes of UTF-8 for 8-bit controls, and needs
// each sequence in one piece.
type sequence struct {
	state  sequenceState
	prefix byte  // private marker of a CSI, one of "<=>?", or 0
	inter  byte  // the last intermediate byte, or 0
	final  byte  // set once the sequence is complete
	params []int // 0 where omitted
	size   int   // bytes of a string so far
}

type sequenceState uint8

const (
	ground sequenceState = iota // in no sequence
	escape                      // after ESC
	csi                         // after ESC [
	// in a CSI that makes no sense: it ends like any other, without effect
	broken
	str   // in a string that ends with the line, such as an OSC
	dcs   // in a DCS, in the parameters that it begins with
	sixel // in a DCS that holds a sixel image
)

const (
	maxParams = 32
	maxParam  = 1<<15 - 1 // larger ones mean this
	maxString = 16 << 20  // images come in strings
)

// An event is what scan has found.
type event uint8

const (
	none event = iota // nothing to do
	// the last byte is a C0 control, to be obeyed at once, also inside a sequence
	control
	escEnded // an escape sequence is complete: inter, final
	csiEnded // a control sequence is complete: prefix, params, inter, final
)

func (s *sequence) open() bool { return s.state != ground }

// begin opens a sequence, after an ESC.
func (s *sequence) begin() {
	*s = sequence{state: escape, params: s.params[:0]}
}

// scan gives bytes to the open sequence until there is something to do, and returns how many it
// took. A byte that cannot be part of a sequence ends it, and is not taken.
func (s *sequence) scan(b []byte) (n int, e event) {
	for n < len(b) && s.open() {
		switch c := b[n]; {
		case s.state >= str:
			n += s.skip(b[n:])
			continue
		case c == esc:
			s.begin()
		case c == can || c == sub:
			s.state = ground
		case c < ' ':
			return n + 1, control
		case c == del:
		case c > del:
			s.state = ground
			return n, none
		default:
			if e := s.take(c); e != none {
				return n + 1, e
			}
		}
		n++
	}
	return n, none
}

// skip drops bytes of a string, up to its end.
func (s *sequence) skip(b []byte) int {
	b = b[:min(len(b), maxString-s.size)]
	for i, c := range b {
		s.state = s.state.after(c)
		switch {
		case c == esc:
			s.begin() // of ST, or of what came instead
			return i + 1
		case c == bel || c == can || c == sub:
			s.state = ground
			return i + 1
		case c == '\n' && s.state != sixel:
			s.state = ground
			return i
		}
	}
	if s.size += len(b); s.size == maxString {
		s.state = ground
	}
	return len(b)
}

// after returns the state of a string after one of its bytes: a DCS is an image while it looks like
// one.
func (s sequenceState) after(c byte) sequenceState {
	switch {
	case s == dcs && (c >= '0' && c <= '9' || c == ';'):
	case s == dcs && c == 'q':
		return sixel
	case s == dcs:
		return str
	case s == sixel && c == ' ', s == sixel && c > '~':
		return str
	}
	return s
}

// take gives a printable ASCII byte to an escape or control sequence.
func (s *sequence) take(c byte) event {
	switch {
	case s.state == escape:
		return s.takeEscape(c)
	case c >= '@': // the end of a CSI
		ok := s.state == csi
		s.state, s.final = ground, c
		if ok {
			return csiEnded
		}
	case c < '0':
		s.inter = c
	case s.inter != 0 || c == ':': // only colours have parameters of parameters
		s.state = broken
	case c >= '<':
		if s.prefix != 0 || len(s.params) > 0 {
			s.state = broken
		}
		s.prefix = c
	default:
		s.param(c)
	}
	return none
}

func (s *sequence) takeEscape(c byte) event {
	if c < '0' {
		s.inter = c
		return none
	}
	if s.inter == 0 {
		switch c {
		case '[':
			s.state = csi
			return none
		case 'P':
			s.state = dcs
			return none
		case ']', '_', '^', 'X', 'k':
			s.state = str
			return none
		}
	}
	s.state, s.final = ground, c
	return escEnded
}

// param adds a digit or ";" to the parameters.
func (s *sequence) param(c byte) {
	if len(s.params) == 0 {
		s.params = append(s.params, 0)
	}
	if c != ';' {
		p := &s.params[len(s.params)-1]
		*p = min(*p*10+int(c-'0'), maxParam)
	} else if len(s.params) < maxParams {
		s.params = append(s.params, 0)
	} else {
		s.state = broken
	}
}

// arg returns a parameter, or def if it was omitted or is 0: wherever there is a default, these
// mean the same.
func (s *sequence) arg(i, def int) int {
	if i < len(s.params) && s.params[i] > 0 {
		return s.params[i]
	}
	return def
}

// switches reports whether a control sequence chooses the screen, and whether it chooses the
// alternate one.
func (s *sequence) switches() (on, ok bool) {
	if s.prefix != '?' || s.inter != 0 || s.final != 'h' && s.final != 'l' {
		return false, false
	}
	for _, p := range s.params {
		if isScreenMode(p) {
			return s.final == 'h', true
		}
	}
	return false, false
}

// isScreenMode reports whether a private mode is one of those that choose the screen.
func isScreenMode(mode int) bool { return mode == 47 || mode == 1047 || mode == 1049 }
