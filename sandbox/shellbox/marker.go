package shellbox

import (
	"bytes"
	"strconv"
)

// A marker is an OSC 133 sequence (FinalTerm's semantic prompts) that the shell prints between the output:
//
//	ESC ] 133 ; C ; seq ; background ; nonce BEL                  output of command seq starts here
//	ESC ] 133 ; D ; status ; seq ; pid ; directory ; nonce BEL    the shell pid is at its prompt, after command seq
//
// The nonce is the session's secret. seq has to be the current command's, so that old markers are mere output. pid keeps a nested
// shell that inherited PS1 from speaking for ours.
type marker struct {
	kind       byte // 'C' or 'D'
	seq        int
	status     int
	pid        int
	background int    // C: the shell's $!, 0 if none
	cwd        string // D
}

const (
	markerStart = "\x1b]133;"
	// A directory's name may have PATH_MAX bytes (4,096 on Linux); $PWD may be longer by relative cds, but not much.
	markerMax = 16 << 10
)

// A scanner takes markers out of a terminal's output. It looks at each byte once, except for the few that may begin a marker.
type scanner struct {
	nonce   string
	pending []byte // the begin of what may be a marker
}

// next splits chunk at its first marker: the text before it, the marker if there is one, and the rest. If the chunk ends with the
// possible begin of a marker, next keeps that for the following call; so the texts together are exactly the output without markers.
// The text is valid until the next call.
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

// parse reads the marker at b's begin and returns its length; 0 if there is none, -1 if b ends too early to tell.
func (s *scanner) parse(b []byte) (*marker, int) {
	if len(b) < len(markerStart)+2 {
		if bytes.HasPrefix([]byte(markerStart+"C"), b) || bytes.HasPrefix([]byte(markerStart+"D"), b) {
			return nil, -1
		}
		return nil, 0
	}
	if !bytes.HasPrefix(b, []byte(markerStart)) || b[len(markerStart)+1] != ';' {
		return nil, 0
	}
	m := &marker{kind: b[len(markerStart)]}
	var numbers []*int
	switch m.kind {
	case 'C':
		numbers = []*int{&m.seq, &m.background}
	case 'D':
		numbers = []*int{&m.status, &m.seq, &m.pid}
	default:
		return nil, 0
	}
	at := len(markerStart) + 2
	for _, number := range numbers {
		end := at
		for end < len(b) && '0' <= b[end] && b[end] <= '9' && end-at < 10 {
			end++
		}
		if end == len(b) {
			return nil, -1
		}
		if b[end] != ';' || end == at && number != &m.background {
			return nil, 0
		}
		*number, _ = strconv.Atoi(string(b[at:end]))
		at = end + 1
	}
	// The directory may hold any byte, BEL and ESC too: the marker ends at the nonce and BEL.
	end := s.nonce + "\x07"
	if m.kind == 'D' {
		end = ";" + end
	}
	i := bytes.Index(b[at:], []byte(end))
	if m.kind == 'C' && i > 0 {
		return nil, 0
	}
	if i < 0 {
		if m.kind == 'C' && !bytes.HasPrefix([]byte(end), b[at:]) || len(b) > markerMax {
			return nil, 0
		}
		return nil, -1
	}
	m.cwd = string(b[at : at+i])
	return m, at + i + len(end)
}
