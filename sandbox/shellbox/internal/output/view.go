package output

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/terminal"
)

// A View is the output since the last Result of the command, as one call will return it: head and
// tail, in bounded memory. What can still be rewritten is in the cleaner.
//
// What a Result has shown cannot be taken back. If the command rewrites such a line later, the next
// Result has the line again, whole. A line that has only become longer goes on where the Result
// before has ended, unless another line comes first.
type View struct {
	kept  headtail.Buffer   // text that can no longer change
	shown map[uint64]string // what earlier Results have shown of lines that could still change

	until  *regexp.Regexp
	limit  int    // MaxOutput of the call
	window []byte // the text of kept that until has been searched in, without a match
	match  *Piece // what until matched
}

// matchMax is the length of a match of Until, at most. The window keeps that much of the text that
// has been searched.
const matchMax = 4 << 10

// Matched reports whether until has matched.
func (v *View) Matched() bool { return v.match != nil }

// searches reports whether until has not matched yet.
func (v *View) searches() bool { return v.until != nil }

// write adds text that can no longer change. finals says where lines in it are that Results may
// have shown.
func (v *View) write(text []byte, finals []terminal.Final) {
	at := 0
	for _, f := range finals {
		v.keep(text[at:f.Begin])
		v.keep(v.unshown(f.ID, text[f.Begin:f.End]))
		at = f.End
	}
	v.keep(text[at:])
}

func (v *View) keep(text []byte) {
	v.kept.Write(text)
	if v.until != nil {
		v.window = append(v.window, text...)
	}
}

// unshown returns what is to be added of a line, or of the start of one, that is final.
func (v *View) unshown(id uint64, text []byte) []byte {
	shown, ok := v.shown[id]
	if !ok {
		return text
	}
	if !bytes.HasSuffix(text, newline) && len(text) < len(shown) &&
		strings.HasPrefix(shown, string(text)) {
		v.shown[id] = shown[len(text):]
		return nil
	}
	delete(v.shown, id)
	return news(text, shown, v.kept.Len() == 0)
}

var newline = []byte("\n")

// news returns what is to be added of a line of which an earlier Result has shown something. first
// is true if nothing comes before it in the Result.
func news(text []byte, shown string, first bool) []byte {
	rest, longer := bytes.CutPrefix(text, []byte(shown))
	switch {
	case longer && first && !strings.HasSuffix(shown, "\n"):
		return rest
	case string(bytes.TrimSuffix(text, newline)) == strings.TrimSuffix(shown, "\n"):
		return nil
	}
	return text
}

// added calls f with each line that can still be rewritten, and with the end of it that is to be
// added.
func (v *View) added(c *terminal.Cleaner, f func(id uint64, text, added []byte)) {
	first := v.kept.Len() == 0
	for id, text := range c.Open() {
		added := text
		if shown, ok := v.shown[id]; ok {
			added = news(text, shown, first)
		}
		first = first && len(added) == 0
		f(id, text, added)
	}
}

// open returns what the lines that can still be rewritten add to the output.
func (v *View) open(c *terminal.Cleaner) (all []byte) {
	v.added(c, func(_ uint64, _, added []byte) { all = append(all, added...) })
	return all
}

// show notes that a Result has the first n bytes of open.
func (v *View) show(c *terminal.Cleaner, n int) {
	shown := make(map[uint64]string)
	v.added(c, func(id uint64, text, added []byte) {
		old, ok := v.shown[id]
		switch size := min(len(added), n); {
		case size > 0:
			shown[id] = string(text[:len(text)-len(added)+size])
		case ok:
			shown[id] = old
		}
		n -= min(len(added), n)
	})
	v.shown = shown
	c.Mark()
}

// search looks for until in the window and in the lines behind it. It returns how many bytes it has
// searched.
func (v *View) search(c *terminal.Cleaner) int {
	if v.until == nil {
		return 0
	}
	open := v.open(c)
	all := append(v.window, open...)
	at := v.until.FindIndex(all)
	if at == nil {
		if len(v.window) > 4*matchMax {
			v.window = append(v.window[:0], v.window[len(v.window)-matchMax:]...)
		}
		return len(all)
	}
	matched := string(all[at[0]:at[1]])
	// how much of the window is behind the match, and so not in the Result
	rest := max(len(v.window)-at[1], 0)
	open = open[:max(at[1]-len(v.window), 0)]
	if len(open) > 0 {
		v.show(c, len(open))
	}
	v.match = v.commit(max(v.kept.Len()-rest, 0), open)
	v.match.matched = matched
	v.until, v.window = nil, nil
	return len(all)
}

// commit returns the first n bytes of the text that can no longer change and then open, in at most
// limit bytes. The rest belongs to the next piece.
func (v *View) commit(n int, open []byte) *Piece {
	first := v.kept.Next(n)
	first.Write(open)
	first.Max = v.limit
	return newPiece(&first)
}
