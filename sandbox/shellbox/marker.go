package shellbox

import (
	"bytes"
	"strconv"
)

// A marker is an OSC 133 sequence (FinalTerm's semantic prompts) that the shell prints between the
// output:
//
//	C ; seq ; nonce ; background                       the output of command seq starts here
//	D ; seq ; nonce ; status ; idle ; directory ; nonce   command seq has ended, or the shell answers
//	P ; nonce                     the shell asks the terminal for more lines, while a command runs
//
// each of them behind ESC ] 133 ; and before a BEL.
//
// Each nonce is one marker's, and made of the session's secret: what has another one is output.
type marker struct {
	kind       byte // 'C', 'D' or 'P'
	seq        int
	status     int    // D: $?
	background int    // C: the shell's $!, 0 if none
	cwd        string // D
	bash       bool   // D: the shell is bash, idle begins with a b
	// D: the number in idle, $TMOUT: after so many seconds without a line bash ends. 0: never
	idle int
}

const (
	markerStart = "\x1b]133;"
	// A directory's name may have PATH_MAX bytes (4,096 on Linux); $PWD may be longer by relative
	// cds, but not much.
	markerMax = 16 << 10
)

// A scanner takes markers out of a terminal's output. It looks at each byte once, except for the
// few that may begin a marker.
type scanner struct {
	nonce   func(kind byte, seq int) string
	broken  string // the nonce of P
	pending []byte // the begin of what may be a marker
}

// next splits chunk at its first marker: the text before it, the marker if there is one, and the
// rest. If the chunk ends with the possible begin of a marker, next keeps that for the following
// call; so the texts together are exactly the output without markers. The text is valid until the
// next call.
func (s *scanner) next(chunk []byte) (text []byte, m *marker, rest []byte) {
	if len(s.pending) > 0 {
		chunk = append(s.pending, chunk...)
		s.pending = nil
	}
	for from := 0; ; {
		i := bytes.IndexByte(chunk[from:], '\x1b')
		if i < 0 {
			return chunk, nil, nil
		}
		i += from
		m, n := s.parse(chunk[i:])
		switch {
		case n < 0: // it takes more bytes to tell
			s.pending = append([]byte(nil), chunk[i:]...)
			return chunk[:i], nil, nil
		case n > 0:
			return chunk[:i], m, chunk[i+n:]
		}
		from = i + 1
	}
}

// flush returns what was kept: no more output will come.
func (s *scanner) flush() []byte {
	p := s.pending
	s.pending = nil
	return p
}

// parse reads the marker at b's begin and returns its length; 0 if there is none, -1 if b ends too
// early to tell.
func (s *scanner) parse(b []byte) (*marker, int) {
	if len(b) < len(markerStart)+2 {
		for _, kind := range []string{"C;", "D;", "P;"} {
			if bytes.HasPrefix([]byte(markerStart+kind), b) {
				return nil, -1
			}
		}
		return nil, 0
	}
	m := &marker{kind: b[len(markerStart)]}
	if !bytes.HasPrefix(b, []byte(markerStart)) || b[len(markerStart)+1] != ';' || m.kind != 'C' &&
		m.kind != 'D' && m.kind != 'P' {
		return nil, 0
	}
	at := len(markerStart) + 2
	var n int
	if m.kind == 'P' {
		if n = begins(b[at:], []byte(s.broken+"\a")); n <= 0 {
			return nil, n
		}
		return m, at + n
	}
	if m.seq, n = number(b[at:], ';'); n <= 0 {
		return nil, n
	}
	at += n
	nonce := []byte(s.nonce(m.kind, m.seq))
	if n = begins(b[at:], append(nonce, ';')); n <= 0 {
		return nil, n
	}
	at += n
	if m.kind == 'C' {
		if m.background, n = number(b[at:], '\a'); n <= 0 {
			return nil, n
		}
		return m, at + n
	}
	if m.status, n = number(b[at:], ';'); n <= 0 {
		return nil, n
	}
	at += n
	if at < len(b) && b[at] == 'b' {
		m.bash, at = true, at+1
	}
	if m.idle, n = number(b[at:], ';'); n <= 0 {
		return nil, n
	}
	at += n
	// The directory may hold any byte, BEL and ESC too: the marker ends at the nonce and BEL.
	i := bytes.Index(b[at:], append(append([]byte{';'}, nonce...), '\a'))
	switch {
	case i >= 0:
		m.cwd = string(b[at : at+i])
		return m, at + i + 1 + len(nonce) + 1
	case len(b) > markerMax:
		return nil, 0
	}
	if cut := s.another(b[at:]); cut >= 0 {
		return nil, at + cut
	}
	return nil, -1
}

// another returns where a whole marker begins in what should be a directory's name; -1 if none
// does. No name holds one: its nonces are secret. So the marker before it has lost its end: the
// interrupt key has the kernel drop what the terminal was to show.
func (s *scanner) another(b []byte) int {
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(markerStart))
		if i < 0 {
			return -1
		}
		from += i
		if m, _ := s.parse(b[from:]); m != nil {
			return from
		}
		from++
	}
}

// number reads digits, of which there may be none, and the byte behind them. n is their length, 0
// if that is not what b begins with, -1 if b ends too early.
func number(b []byte, end byte) (value, n int) {
	for n < len(b) && n < 18 && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	switch {
	case n == len(b):
		return 0, -1
	case b[n] != end:
		return 0, 0
	}
	value, _ = strconv.Atoi(string(b[:n]))
	return value, n + 1
}

// begins returns the length of text if b begins with it; 0 if it does not, -1 if b ends too early
// to tell.
func begins(b, text []byte) int {
	switch {
	case bytes.HasPrefix(b, text):
		return len(text)
	case bytes.HasPrefix(text, b):
		return -1
	}
	return 0
}
