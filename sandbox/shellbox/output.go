package shellbox

import (
	"bytes"
	"regexp"

	"github.com/sandshell/sandshell/internal/terminal"
)

// An output is what a command printed since its last Result, cleaned: head and tail, in bounded memory.
type output struct {
	cleaner terminal.Cleaner
	head    []byte
	tail    []byte // up to twice its half of max, then the older half is cut out
	omitted int64
	max     int
	shown   []byte // what of the unfinished line earlier Results have shown
	buf     []byte // for the cleaner to append to

	until  *regexp.Regexp
	window []byte // complete lines to search, none of them matched so far
}

// A piece is the output of one Result.
type piece struct {
	text    string
	omitted int64
	matched string
}

// A match of Until may be that long; the window keeps as much of what has been searched.
const matchMax = 4 << 10

// write takes raw output. When it makes Until match, it returns the output up to the match's end, and keeps the rest.
func (o *output) write(raw []byte) *piece {
	o.buf = o.cleaner.Append(o.buf[:0], raw)
	text := o.unshown(o.buf)
	o.keep(text)
	if o.until == nil {
		return nil
	}
	if len(text) > 0 {
		o.window = append(o.window, text...)
	}
	return o.search()
}

// unshown cuts off text, which has become final, what of it was shown as the unfinished line. A line that was rewritten since is
// not what was shown, and stays whole.
func (o *output) unshown(text []byte) []byte {
	if len(o.shown) == 0 || len(text) == 0 {
		return text
	}
	shown := o.shown
	if len(text) < len(shown) && text[len(text)-1] != '\n' && bytes.HasPrefix(shown, text) {
		o.shown = bytes.Clone(shown[len(text):])
		return nil
	}
	o.shown = nil
	return bytes.TrimPrefix(text, shown)
}

// line returns what of the unfinished line is new.
func (o *output) line() []byte {
	return bytes.TrimPrefix(o.cleaner.Line(), o.shown)
}

// expect makes write look for re, from what is there on; nil ends that.
func (o *output) expect(re *regexp.Regexp) *piece {
	o.until, o.window = re, nil
	if re == nil {
		return nil
	}
	o.window = append(append(o.window, o.head...), o.tail...)
	return o.search()
}

func (o *output) search() *piece {
	line := o.line()
	text := append(o.window, line...)
	at := o.until.FindIndex(text)
	if at == nil {
		if len(o.window) > 4*matchMax {
			o.window = append(o.window[:0], o.window[len(o.window)-matchMax:]...)
		}
		return nil
	}
	p := &piece{matched: string(text[at[0]:at[1]])}
	rest := bytes.Clone(text[at[1]:min(max(at[1], len(o.window)), len(text))])
	if at[1] > len(o.window) {
		rest = nil
	}
	shownLine := max(at[1]-len(o.window), 0)
	o.dropLast(len(rest))
	p.text, p.omitted = o.committed()
	p.text += string(line[:shownLine])
	if shownLine > 0 {
		all := o.cleaner.Line()
		o.shown = bytes.Clone(all[:len(all)-len(line)+shownLine])
	}
	o.until, o.window = nil, nil
	o.keep(rest)
	return p
}

// keep appends text to head and tail.
func (o *output) keep(text []byte) {
	half := o.max / 2
	if len(o.tail) == 0 && len(o.head) < half {
		n := min(half-len(o.head), len(text))
		o.head = append(o.head, text[:n]...)
		text = text[n:]
	}
	for len(text) > 0 {
		n := min(len(text), 2*half-len(o.tail))
		o.tail = append(o.tail, text[:n]...)
		text = text[n:]
		if len(o.tail) >= 2*half && len(text) > 0 {
			cut := len(o.tail) - half
			o.tail = append(o.tail[:0], o.tail[cut:]...)
			o.omitted += int64(cut)
		}
	}
}

// dropLast takes the last n bytes back.
func (o *output) dropLast(n int) {
	k := min(n, len(o.tail))
	o.tail = o.tail[:len(o.tail)-k]
	o.head = o.head[:len(o.head)-min(n-k, len(o.head))]
}

// committed returns the complete lines and starts anew.
func (o *output) committed() (string, int64) {
	half := o.max / 2
	omitted := o.omitted
	tail := o.tail
	if len(tail) > half {
		omitted += int64(len(tail) - half)
		tail = tail[len(tail)-half:]
	}
	text := string(o.head) + string(tail)
	o.head, o.tail, o.omitted = o.head[:0], o.tail[:0], 0
	if cap(o.head)+cap(o.tail) > 64<<10 { // a job or an idle session keeps no megabyte for later
		o.head, o.tail = nil, nil
	}
	return text, omitted
}

// take returns all output since the last piece, in at most limit bytes, and starts anew. At the command's end the
// unfinished line is final.
func (o *output) take(limit int, end bool) *piece {
	if end {
		o.cleaner.Flush()
	}
	p := new(piece)
	p.text, p.omitted = o.committed()
	p.text += string(o.line())
	o.shown = bytes.Clone(o.cleaner.Line())
	o.window = nil
	return p.limit(limit)
}

// limit cuts the middle out of p, so that at most n bytes stay.
func (p *piece) limit(n int) *piece {
	if cut := len(p.text) - n; cut > 0 {
		head := n / 2
		p.text = p.text[:head] + p.text[head+cut:]
		p.omitted += int64(cut)
	}
	return p
}

// trimTrace cuts off what set -x traces of the call that ends a command, see shell.commandLines.
func (p *piece) trimTrace() *piece {
	if at := endTrace.FindStringIndex(p.text[max(0, len(p.text)-1024):]); at != nil {
		p.text = p.text[:max(0, len(p.text)-1024)+at[0]]
	}
	return p
}

var endTrace = regexp.MustCompile(`(?m)^\S+ _ss_e \d+$`)
