package dialect

import (
	"bytes"
	"math"
	"strconv"
)

// A Marker is an OSC 133 sequence (FinalTerm's semantic prompts) that the shell prints between the
// output. Each stands between ESC ] 133 ; and BEL:
//
//	C ; seq ; nonce ; background                         the output of command seq begins here
//	D ; seq ; nonce ; status ; idle ; directory ; nonce  command seq has ended, or is an answer:
//	                                                     then status is of a command, as in 7.130
//	P ; nonce                                            the shell asks for more lines
//
// Each nonce belongs to one marker and is made of the shell's secret. A sequence with another nonce
// is output.
type Marker struct {
	Kind       Kind
	Seq        int    // Begin, End: the number of the line
	Status     int    // End: $?
	StatusOf   int    // End: the number of the command whose status it is; 0: it is just $?
	Background int    // Begin: the shell's $!, 0 if none
	Dir        string // End: $PWD
	Bash       bool   // End: the shell is bash (idle begins with a b)
	// IdleLimit, of End, is $TMOUT: bash ends after that many seconds without a line. 0: never.
	IdleLimit int
}

// A Kind is the letter of a Marker.
type Kind byte

// The kinds of Marker.
const (
	Begin     Kind = 'C'
	End       Kind = 'D'
	MoreLines Kind = 'P'
)

const (
	markerStart = "\x1b]133;"
	// A directory's name may have PATH_MAX bytes (4,096 on Linux). Relative cds may make $PWD a
	// little longer.
	markerMax = 16 << 10
)

// A Scanner takes markers out of a terminal's output. It looks at each byte once, except for the
// few that may begin a marker.
type Scanner struct {
	nonce     func(kind Kind, seq int) string
	moreNonce string // of MoreLines
	pending   []byte // the beginning of a possible marker
}

// Scanner returns a Scanner of the shell's output.
func (d Dialect) Scanner() Scanner { return Scanner{nonce: d.nonce, moreNonce: d.moreNonce} }

// Next splits chunk at its first marker into the text before the marker, the marker (nil if there
// is none), and the rest. If the chunk ends with the possible begin of a marker, Next keeps that
// for the following call. So the texts together are exactly the output without markers. The text is
// valid until the next call.
func (s *Scanner) Next(chunk []byte) (text []byte, m *Marker, rest []byte) {
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
		case n < 0: // only more bytes can tell
			s.pending = append([]byte(nil), chunk[i:]...)
			return chunk[:i], nil, nil
		case n > 0:
			return chunk[:i], m, chunk[i+n:]
		}
		from = i + 1
	}
}

// Flush returns what Next has kept, when no more output will come.
func (s *Scanner) Flush() []byte {
	p := s.pending
	s.pending = nil
	return p
}

// parse reads the marker at b's begin and returns its length. The length is 0 if there is no
// marker, and -1 if b ends too early to tell.
func (s *Scanner) parse(b []byte) (*Marker, int) {
	if len(b) < len(markerStart)+2 {
		for _, kind := range []string{"C;", "D;", "P;"} {
			if bytes.HasPrefix([]byte(markerStart+kind), b) {
				return nil, -1
			}
		}
		return nil, 0
	}
	m := &Marker{Kind: Kind(b[len(markerStart)])}
	if !bytes.HasPrefix(b, []byte(markerStart)) || b[len(markerStart)+1] != ';' ||
		m.Kind != Begin && m.Kind != End && m.Kind != MoreLines {
		return nil, 0
	}
	at := len(markerStart) + 2
	var n int
	if m.Kind == MoreLines {
		if n = matchPrefix(b[at:], []byte(s.moreNonce+"\a")); n <= 0 {
			return nil, n
		}
		return m, at + n
	}
	if m.Seq, n = number(b[at:], ';'); n <= 0 {
		return nil, n
	}
	at += n
	nonce := []byte(s.nonce(m.Kind, m.Seq))
	if n = matchPrefix(b[at:], append(nonce, ';')); n <= 0 {
		return nil, n
	}
	at += n
	if m.Kind == Begin {
		if m.Background, n = number(b[at:], '\a'); n <= 0 {
			return nil, n
		}
		return m, at + n
	}
	if m.StatusOf, n = number(b[at:], '.'); n < 0 {
		return nil, n
	}
	at += n
	if m.Status, n = number(b[at:], ';'); n <= 0 {
		return nil, n
	}
	at += n
	if at < len(b) && b[at] == 'b' {
		m.Bash, at = true, at+1
	}
	if m.IdleLimit, n = idleLimit(b[at:]); n <= 0 {
		return nil, n
	}
	at += n
	// The directory may hold any byte, also BEL and ESC. So the marker ends at the nonce and BEL.
	i := bytes.Index(b[at:], append(append([]byte{';'}, nonce...), '\a'))
	switch {
	case i >= 0:
		m.Dir = string(b[at : at+i])
		return m, at + i + 1 + len(nonce) + 1
	case len(b) > markerMax:
		return nil, 0
	}
	if cut := s.findMarker(b[at:]); cut >= 0 {
		return nil, at + cut
	}
	return nil, -1
}

// findMarker returns where a whole marker begins in what should be a directory's name, or -1. No
// name holds a marker, because nonces are secret. So the marker before it has lost its end: the
// interrupt key has the kernel drop what the terminal was to show.
func (s *Scanner) findMarker(b []byte) int {
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

// idleLimit is number for the shell's $TMOUT, to which a user may have assigned anything that an
// int64 holds. The shell never ends if it is negative.
func idleLimit(b []byte) (seconds, n int) {
	const longest = len("-9223372036854775808")
	end := bytes.IndexByte(b[:min(len(b), longest+1)], ';')
	switch {
	case end < 0 && len(b) <= longest:
		return 0, -1
	case end < 0:
		return 0, 0
	}
	limit, err := strconv.ParseInt(string(b[:end]), 10, 64)
	if err != nil {
		return 0, 0
	}
	return int(min(max(limit, 0), math.MaxInt32)), end + 1
}

// number reads any number of digits and the byte end behind them. n is their length, 0 if b does
// not begin so, and -1 if b ends too early.
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

// matchPrefix returns the length of text if b begins with it, 0 if it does not, and -1 if b ends
// too early to tell.
func matchPrefix(b, text []byte) int {
	switch {
	case bytes.HasPrefix(b, text):
		return len(text)
	case bytes.HasPrefix(text, b):
		return -1
	}
	return 0
}
