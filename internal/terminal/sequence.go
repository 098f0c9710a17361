package terminal

// These are the C0 controls that have an effect, and DEL.
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

// A sequence parses one escape sequence at a time. It follows the state machine of the VT500
// (https://vt100.net/emu/dec_ansi_parser) and xterm, with one difference: a broken sequence must
// not swallow the rest of the output. So a string ends at the end of the line, unless it is a sixel
// image, which may contain line breaks. Every string ends after maxString bytes.
//
// The decoder of charmbracelet/x/ansi cannot be used. As of v0.11.9, it panics at the 33rd
// parameter, lets large parameters overflow, mistakes bytes of UTF-8 for 8-bit controls, and needs
// each sequence in one piece.
type sequence struct {
	state  sequenceState
	prefix byte  // the private marker of a CSI, one of "<=>?"; 0: none
	inter  byte  // the last intermediate byte; 0: none
	final  byte  // set when the sequence is complete
	params []int // 0 where omitted
	size   int   // length of a string so far, in bytes
}

type sequenceState uint8

const (
	ground sequenceState = iota // in no sequence
	escape                      // after ESC
	csi                         // after ESC [
	broken                      // in an invalid CSI: it ends like any other, and has no effect

	// The rest are strings.
	str   // in a string that ends with the line, such as an OSC
	dcs   // in the parameters at the start of a DCS
	sixel // in a DCS that holds a sixel image
)

const (
	maxParams = 32
	maxParam  = 1<<15 - 1 // larger values are reduced to it
	maxString = 16 << 20  // large, because images come in strings
)

// An event says what scan has found.
type event uint8

const (
	none     event = iota
	control        // the last byte is a C0 control, which takes effect even within a sequence
	escEnded       // an escape sequence is complete: inter and final are set
	csiEnded       // a control sequence is complete: prefix, params, inter and final are set
)

func (s *sequence) open() bool { return s.state != ground }

// begin opens a sequence. An ESC has come.
func (s *sequence) begin() {
	*s = sequence{state: escape, params: s.params[:0]}
}

// scan parses bytes of the open sequence, up to an event or to the end of the sequence. It returns
// how many bytes it has used. A byte that cannot be part of a sequence ends the sequence, and is
// not used.
func (s *sequence) scan(b []byte) (n int, e event) {
	for n < len(b) && s.open() {
		switch c := b[n]; {
		case s.state >= str:
			n += s.skipString(b[n:])
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
			if e := s.parseByte(c); e != none {
				return n + 1, e
			}
		}
		n++
	}
	return n, none
}

// skipString skips bytes of a string, at most to its end, and returns how many.
func (s *sequence) skipString(b []byte) int {
	b = b[:min(len(b), maxString-s.size)]
	for i, c := range b {
		s.state = s.state.next(c)
		switch {
		case c == esc:
			s.begin() // of ST, or of another sequence that ends the string
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

// next returns the state of a string after its next byte. A DCS is an image as long as its bytes
// are those of an image.
func (s sequenceState) next(c byte) sequenceState {
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

// parseByte parses a printable ASCII byte of an escape or control sequence.
func (s *sequence) parseByte(c byte) event {
	switch {
	case s.state == escape:
		return s.parseEscapeByte(c)
	case c >= '@': // the end of a CSI
		ok := s.state == csi
		s.state, s.final = ground, c
		if ok {
			return csiEnded
		}
	case c < '0':
		s.inter = c
	case s.inter != 0 || c == ':': // ":" separates subparameters, which only colours have
		s.state = broken
	case c >= '<':
		if s.prefix != 0 || len(s.params) > 0 {
			s.state = broken
		}
		s.prefix = c
	default:
		s.addParam(c)
	}
	return none
}

// parseEscapeByte parses a printable ASCII byte after ESC.
func (s *sequence) parseEscapeByte(c byte) event {
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

// addParam adds a digit or ";" to the parameters.
func (s *sequence) addParam(c byte) {
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

// arg returns the i-th parameter, or def if it was omitted or is 0. For every parameter that has a
// default, 0 means the default too.
func (s *sequence) arg(i, def int) int {
	if i < len(s.params) && s.params[i] > 0 {
		return s.params[i]
	}
	return def
}

// screenSwitch reports in ok whether a control sequence switches the screen. on is true if it
// switches to the alternate screen.
func (s *sequence) screenSwitch() (on, ok bool) {
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

// isScreenMode reports whether a private mode switches between the screens.
func isScreenMode(mode int) bool { return mode == 47 || mode == 1047 || mode == 1049 }
