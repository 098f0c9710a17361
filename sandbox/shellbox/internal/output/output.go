// Package output keeps what commands print, and knows who has received it.
//
// An Output is what one command prints, cleaned: each call that waits for the command has a View of
// it and takes a Piece for its Result. A Tee hands the raw output to a caller's writer. A Spool
// keeps all output of a job.
package output

import (
	"maps"
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
	rows, cols int    // of the terminal
	buf        []byte // for the cleaner to append to
	queries    []terminal.Query
	unreported View // what no Result has returned
	views      []*View
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

// New returns an Output. It keeps that many bytes for calls that have not begun.
func New(keep int) Output { return Output{unreported: View{kept: headtail.Buffer{Max: keep}}} }

// SetSize sets the size of the terminal. It says how many rows the command can rewrite.
func (o *Output) SetSize(rows, cols int) {
	o.rows, o.cols = rows, cols
	o.cleaner.SetSize(rows, cols)
}

// searchMax bounds how many bytes one Write searches for Until, except in the text that is on the
// screen at its end.
const searchMax = 1 << 20

// Write adds raw output. Until finds what is on the screen for a while, too, even if raw rewrites
// it.
func (o *Output) Write(raw []byte) {
	o.queries = o.queries[:0]
	searched := 0
	for rest, more := raw, true; more; {
		done := len(raw) - len(rest)
		if searched < searchMax && slices.ContainsFunc(o.views, (*View).searches) {
			o.buf, rest, more = o.cleaner.AppendStep(o.buf[:0], rest)
		} else {
			o.buf, rest, more = o.cleaner.Append(o.buf[:0], rest), nil, false
		}
		for _, q := range o.cleaner.Queries() {
			q.End += done
			o.queries = append(o.queries, q)
		}
		o.unreported.write(o.buf, o.cleaner.Finals())
		for _, v := range o.views {
			v.write(o.buf, o.cleaner.Finals())
			searched += v.search(&o.cleaner)
		}
	}
}

// Reset forgets all output. There must be no Views.
func (o *Output) Reset() {
	o.unreported = View{kept: headtail.Buffer{Max: o.unreported.kept.Max}}
	o.cleaner.Reset()
}

// Restore makes the Output keep its output for calls that have not begun: that part of p, which
// holds all raw output so far, that can no longer change. No View has been opened.
func (o *Output) Restore(p *Part) {
	o.unreported.kept = p.clean(o.rows, o.cols, false) // o.cleaner has the rest
}

// Open returns a View of what no Result has returned, and of what will come. The View keeps at most
// limit bytes. If until is not nil, the View searches for it.
func (o *Output) Open(limit int, until *regexp.Regexp) *View {
	o.unreported.kept.Max = max(o.unreported.kept.Max, limit) // the next call may ask for as much
	v := &View{kept: o.unreported.kept.Clone(), shown: maps.Clone(o.unreported.shown),
		limit: limit, until: until}
	if until != nil {
		v.window = v.kept.Bytes()
		v.search(&o.cleaner)
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

// All ends a View and returns all of its output. If the command has ended, the output is final.
func (o *Output) All(v *View, ended bool) *Piece {
	o.Close(v)
	if ended {
		o.buf = o.cleaner.Flush(o.buf[:0])
		for _, v := range append(o.views, v) {
			v.write(o.buf, o.cleaner.Finals())
		}
	}
	open := v.open(&o.cleaner)
	v.show(&o.cleaner, len(open)) // before commit, which empties v.kept
	p := v.commit(v.kept.Len(), open)
	o.unreported = View{kept: headtail.Buffer{Max: o.unreported.kept.Max}, shown: v.shown}
	return p
}

// Matched reports whether any View has a match that no Result has taken.
func (o *Output) Matched() bool {
	return slices.ContainsFunc(o.views, (*View).Matched)
}

// Partial reports whether the line that the cursor is on has text.
func (o *Output) Partial() bool { return len(o.cleaner.Line()) > 0 }

// FullScreen reports whether the command draws on the alternate screen.
func (o *Output) FullScreen() bool { return o.cleaner.FullScreen() }

// Queries returns what the last Write asks the terminal.
func (o *Output) Queries() []terminal.Query { return o.queries }

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
