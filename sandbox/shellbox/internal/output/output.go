// Package output keeps what commands print, and knows who has received it.
//
// An Output is what one command prints, cleaned: each call that waits for the command has a View of
// it and takes a Piece for its Result. A Tee hands the raw output to a caller's writer. A Spool
// keeps all output of a job.
package output

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// An Output is what one command prints, cleaned. Each call that waits for the command has a View of
// its own. A caller's mutex must guard the Output with its Views.
type Output struct {
	cleaner    terminal.Cleaner
	buf        []byte // for the cleaner to append to
	unreported View   // what no Result has had
	views      []*View
}

// A View is the output since the last Result of the command, as one call will return it: head and
// tail, in bounded memory.
type View struct {
	kept  headtail.Buffer // complete lines, which can no longer change
	shown []byte          // the part of the unfinished line that earlier Results have shown

	until  *regexp.Regexp
	limit  int    // MaxOutput of the call
	window []byte // the complete lines that until has been searched in, without a match
	match  *Piece // what until matched
}

// A Piece is the output of one Result.
type Piece struct {
	text    string
	at      int // where bytes are omitted
	omitted int64
	matched string
}

// Fill puts the piece into r, and returns r.
func (p *Piece) Fill(r *sandbox.Result) *sandbox.Result {
	r.Output, r.OmittedAt, r.Omitted, r.Matched = p.text, p.at, p.omitted, p.matched
	return r
}

// matchMax is the length of a match of Until, at most. The window keeps that much of the text that
// has been searched.
const matchMax = 4 << 10

// New returns an Output that keeps so many bytes for calls that have not begun.
func New(keep int) Output { return Output{unreported: View{kept: headtail.Buffer{Max: keep}}} }

// Write adds raw output.
func (o *Output) Write(raw []byte) {
	o.buf = o.cleaner.Append(o.buf[:0], raw)
	o.unreported.add(o.buf, nil)
	for _, v := range o.views {
		v.add(o.buf, o.cleaner.Line())
	}
}

// Reset forgets all output. There must be no Views.
func (o *Output) Reset() {
	o.unreported.kept.Reset()
	o.cleaner.Reset()
}

// Open returns a View of what no Result has had and of what will come, at most limit bytes, until a
// Result takes it. If until is not nil, the View looks for it.
func (o *Output) Open(limit int, until *regexp.Regexp) *View {
	o.unreported.kept.Max = max(o.unreported.kept.Max, limit) // the next call may ask for as much
	v := &View{kept: o.unreported.kept.Clone(), shown: bytes.Clone(o.unreported.shown),
		limit: limit, until: until}
	if until != nil {
		v.window = v.kept.Bytes()
		v.search(o.cleaner.Line())
	}
	o.views = append(o.views, v)
	return v
}

// Close ends a View that no Result takes.
func (o *Output) Close(v *View) {
	if i := slices.Index(o.views, v); i >= 0 {
		o.views = slices.Delete(o.views, i, i+1)
	}
}

// UpToMatch ends a View and returns its output up to the end of what until matched. What follows
// belongs to the next Result.
func (o *Output) UpToMatch(v *View) *Piece {
	o.Close(v)
	o.unreported = View{kept: v.kept, shown: v.shown}
	return v.match
}

// All ends a View and returns all of its output. If the command has ended, the unfinished line is
// final.
func (o *Output) All(v *View, ended bool) *Piece {
	o.Close(v)
	if ended {
		o.buf = o.cleaner.Flush(o.buf[:0])
		for _, v := range append(o.views, v) {
			v.kept.Write(v.unshown(o.buf))
		}
	}
	p := v.commit(v.kept.Len(), v.line(o.cleaner.Line()))
	o.unreported = View{kept: headtail.Buffer{Max: o.unreported.kept.Max},
		shown: bytes.Clone(o.cleaner.Line())}
	return p
}

// Matched reports whether any View has a match that no Result has taken.
func (o *Output) Matched() bool {
	return slices.ContainsFunc(o.views, (*View).Matched)
}

// Partial reports whether the output ends with an unfinished line.
func (o *Output) Partial() bool { return len(o.cleaner.Line()) > 0 }

// FullScreen reports whether the command draws on the alternate screen.
func (o *Output) FullScreen() bool { return o.cleaner.FullScreen() }

// Queries returns what the last Write asks the terminal.
func (o *Output) Queries() []terminal.Query { return o.cleaner.Queries() }

// Matched reports whether until has matched.
func (v *View) Matched() bool { return v.match != nil }

// add adds complete lines. line is the unfinished one behind them.
func (v *View) add(text, line []byte) {
	text = v.unshown(text)
	v.kept.Write(text)
	if v.until != nil {
		v.window = append(v.window, text...)
		v.search(line)
	}
}

// unshown cuts off what earlier Results have shown of text, when it was an unfinished line. If the
// program has rewritten the line since, text stays whole.
func (v *View) unshown(text []byte) []byte {
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
func (v *View) line(line []byte) []byte { return bytes.TrimPrefix(line, v.shown) }

// search looks for until in the window and in the unfinished line all.
func (v *View) search(all []byte) {
	line := v.line(all)
	at := v.until.FindIndex(append(v.window, line...))
	if at == nil {
		if len(v.window) > 4*matchMax {
			v.window = append(v.window[:0], v.window[len(v.window)-matchMax:]...)
		}
		return
	}
	matched := string(append(v.window, line...)[at[0]:at[1]])
	// how much of the complete lines is behind the match, and so not in the Result
	rest := max(len(v.window)-at[1], 0)
	line = line[:max(at[1]-len(v.window), 0)]
	if len(line) > 0 {
		v.shown = bytes.Clone(all[:len(all)-len(v.line(all))+len(line)])
	}
	v.match = v.commit(max(v.kept.Len()-rest, 0), line)
	v.match.matched = matched
	v.until, v.window = nil, nil
}

// commit returns the first n bytes of the complete lines and then line, in at most limit bytes. The
// rest belongs to the next piece.
func (v *View) commit(n int, line []byte) *Piece {
	first := v.kept.Next(n)
	first.Write(line)
	first.Max = v.limit
	return newPiece(&first)
}

// newPiece returns what is kept of an output. It moves the cut to an end of a line if there is one
// near: within an eighth of what is kept, and within 1 KiB.
func newPiece(kept *headtail.Buffer) *Piece {
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
	return &Piece{text: head + tail, at: len(head), omitted: omitted}
}
