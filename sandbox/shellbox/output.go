package shellbox

import (
	"bytes"
	"regexp"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/terminal"
)

// An output is what a command printed since its last Result, cleaned: head and tail, in bounded memory.
type output struct {
	cleaner terminal.Cleaner
	kept    headtail.Buffer // what is final: complete lines
	shown   []byte          // what of the unfinished line earlier Results have shown
	buf     []byte          // for the cleaner to append to

	until  *regexp.Regexp
	limit  int    // MaxOutput of the call that has set until
	window []byte // complete lines to search, none of them matched so far
}

// A piece is the output of one Result.
type piece struct {
	text    string
	omitted int64
	matched string
}

// The length of a match of Until, at most. The window keeps that much of the text that has been searched.
const matchMax = 4 << 10

// write takes raw output. When it makes Until match, it returns the output up to the match's end, and keeps the rest.
func (o *output) write(raw []byte) *piece {
	o.buf = o.cleaner.Append(o.buf[:0], raw)
	text := o.unshown(o.buf)
	o.kept.Write(text)
	if o.until == nil {
		return nil
	}
	if len(text) > 0 {
		o.window = append(o.window, text...)
	}
	return o.search()
}

// unshown cuts off the begin of text that was shown already, when it was an unfinished line. If the program has rewritten the line
// since, text stays whole.
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

// line returns the part of the unfinished line that has not been shown.
func (o *output) line() []byte {
	return bytes.TrimPrefix(o.cleaner.Line(), o.shown)
}

// expect makes write look for re, beginning with the output that is there, for a Result of at most limit bytes. nil ends the search.
func (o *output) expect(re *regexp.Regexp, limit int) *piece {
	o.until, o.limit, o.window = re, limit, nil
	if re == nil {
		return nil
	}
	o.window = o.kept.Bytes()
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
	matched := string(text[at[0]:at[1]])
	rest := max(len(o.window)-at[1], 0) // of the complete lines: after the match, and not in the Result
	line = line[:max(at[1]-len(o.window), 0)]
	if len(line) > 0 {
		all := o.cleaner.Line()
		o.shown = bytes.Clone(all[:len(all)-len(o.line())+len(line)])
	}
	p := o.commit(max(o.kept.Len()-rest, 0), line, o.limit)
	p.matched = matched
	o.until, o.window = nil, nil
	return p
}

// take returns all output since the last piece, in at most limit bytes, and starts anew. At the command's end the
// unfinished line is final.
func (o *output) take(limit int, end bool) *piece {
	if end {
		o.cleaner.Flush()
	}
	p := o.commit(o.kept.Len(), o.line(), limit)
	o.shown = bytes.Clone(o.cleaner.Line())
	o.window = nil
	return p
}

// commit returns the first n bytes of the complete lines and line after them, in at most limit bytes. The rest belongs to the next piece.
func (o *output) commit(n int, line []byte, limit int) *piece {
	first := o.kept.Next(n)
	first.Write(line)
	first.Max = limit
	text, omitted := first.Text()
	return &piece{text: text, omitted: omitted}
}

// trimTrace cuts off set -x's trace of the code that ends a command, see shell.commandLines.
func (p *piece) trimTrace() *piece {
	if at := endTrace.FindStringIndex(p.text[max(0, len(p.text)-1024):]); at != nil {
		p.text = p.text[:max(0, len(p.text)-1024)+at[0]]
	}
	return p
}

var endTrace = regexp.MustCompile(`(?m)^\S+ _ss_e \d+$`)
