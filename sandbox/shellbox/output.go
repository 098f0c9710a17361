package shellbox

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// An output is what a command prints, cleaned. Each call that waits for the command has a view of
// its own.
type output struct {
	cleaner terminal.Cleaner
	buf     []byte // for the cleaner to append to
	untold  view   // what no Result has had
	views   []*view
}

// A view is the output since the last Result of the command, as one call will return it: head and
// tail, in bounded memory.
type view struct {
	kept  headtail.Buffer // what is final: complete lines
	shown []byte          // what of the unfinished line earlier Results have shown

	until  *regexp.Regexp
	limit  int    // MaxOutput of the call
	window []byte // complete lines to search, none of them matched so far
	match  *piece // what until matched
}

// A piece is the output of one Result.
type piece struct {
	text    string
	at      int // where bytes are omitted
	omitted int64
	matched string
}

// fill puts the piece into a Result.
func (p *piece) fill(r *sandbox.Result) *sandbox.Result {
	r.Output, r.OmittedAt, r.Omitted, r.Matched = p.text, p.at, p.omitted, p.matched
	return r
}

// The length of a match of Until, at most. The window keeps that much of the text that has been
// searched.
const matchMax = 4 << 10

// write takes raw output.
func (o *output) write(raw []byte) {
	o.buf = o.cleaner.Append(o.buf[:0], raw)
	o.untold.add(o.buf, nil)
	for _, v := range o.views {
		v.add(o.buf, o.cleaner.Line())
	}
}

// open returns a view of what no Result has had and of what comes, until a Result is taken of it.
// until, if not nil, is looked for in it.
func (o *output) open(limit int, until *regexp.Regexp) *view {
	o.untold.kept.Max = max(o.untold.kept.Max, limit) // the next call may ask for as much
	v := &view{kept: o.untold.kept.Clone(), shown: bytes.Clone(o.untold.shown), limit: limit,
		until: until}
	if until != nil {
		v.window = v.kept.Bytes()
		v.search(o.cleaner.Line())
	}
	o.views = append(o.views, v)
	return v
}

// close ends a view of which no Result is taken.
func (o *output) close(v *view) {
	if i := slices.Index(o.views, v); i >= 0 {
		o.views = slices.Delete(o.views, i, i+1)
	}
}

// matched returns the output up to what until matched. What came after it belongs to the next
// Result.
func (o *output) matched(v *view) *piece {
	o.close(v)
	o.untold = view{kept: v.kept, shown: v.shown}
	return v.match
}

// take returns all of a view's output. At the command's end the unfinished line is final.
func (o *output) take(v *view, end bool) *piece {
	o.close(v)
	if end {
		o.buf = o.cleaner.Flush(o.buf[:0])
		for _, v := range append(o.views, v) {
			v.kept.Write(v.unshown(o.buf))
		}
	}
	p := v.commit(v.kept.Len(), v.line(o.cleaner.Line()))
	o.untold = view{kept: headtail.Buffer{Max: o.untold.kept.Max},
		shown: bytes.Clone(o.cleaner.Line())}
	return p
}

// partial reports whether the output ends with an unfinished line.
func (o *output) partial() bool { return len(o.cleaner.Line()) > 0 }

// add takes complete lines; line is the unfinished one behind them.
func (v *view) add(text, line []byte) {
	text = v.unshown(text)
	v.kept.Write(text)
	if v.until != nil {
		v.window = append(v.window, text...)
		v.search(line)
	}
}

// unshown cuts off the begin of text that was shown already, when it was an unfinished line. If the
// program has rewritten the line since, text stays whole.
func (v *view) unshown(text []byte) []byte {
	if len(v.shown) == 0 || len(text) == 0 {
		return text
	}
	shown := v.shown
	if len(text) < len(shown) && text[len(text)-1] != '\n' && bytes.HasPrefix(shown, text) {
		v.shown = bytes.Clone(shown[len(text):])
		return nil
	}
	v.shown = nil
	return bytes.TrimPrefix(text, shown)
}

// line returns the part of the unfinished line that has not been shown.
func (v *view) line(line []byte) []byte { return bytes.TrimPrefix(line, v.shown) }

func (v *view) search(all []byte) {
	line := v.line(all)
	at := v.until.FindIndex(append(v.window, line...))
	if at == nil {
		if len(v.window) > 4*matchMax {
			v.window = append(v.window[:0], v.window[len(v.window)-matchMax:]...)
		}
		return
	}
	matched := string(append(v.window, line...)[at[0]:at[1]])
	// of the complete lines: after the match, and not in the Result
	rest := max(len(v.window)-at[1], 0)
	line = line[:max(at[1]-len(v.window), 0)]
	if len(line) > 0 {
		v.shown = bytes.Clone(all[:len(all)-len(v.line(all))+len(line)])
	}
	v.match = v.commit(max(v.kept.Len()-rest, 0), line)
	v.match.matched = matched
	v.until, v.window = nil, nil
}

// commit returns the first n bytes of the complete lines and line after them, in at most limit
// bytes. The rest belongs to the next piece.
func (v *view) commit(n int, line []byte) *piece {
	first := v.kept.Next(n)
	first.Write(line)
	first.Max = v.limit
	return newPiece(&first)
}

// newPiece returns what there is of an output. It is cut at the ends of lines where they are near:
// within an eighth of what is kept, and 1 KiB.
func newPiece(kept *headtail.Buffer) *piece {
	head, tail, omitted := kept.HeadTail()
	if omitted > 0 {
		size := len(head) + len(tail)
		if i := strings.LastIndexByte(head, '\n') + 1; i > 0 &&
			len(head)-i <= min(len(head)/8, 1<<10) {
			head = head[:i]
		}
		if i := strings.IndexByte(tail, '\n') + 1; i > 0 && i <= min(len(tail)/8, 1<<10) {
			tail = tail[i:]
		}
		omitted += int64(size - len(head) - len(tail))
	}
	return &piece{text: head + tail, at: len(head), omitted: omitted}
}
