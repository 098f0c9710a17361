package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sandshell/sandshell/sandbox"
)

// noteRoom is what is left of a budget for the notes around a text.
const noteRoom = 200

// resultText renders a Result in at most budget bytes. Its output begins at the offset from of the
// log, which the tool named reader reads; "" is none. screen is what a full-screen program shows.
func resultText(r *sandbox.Result, from int64, reader string, budget int, screen string) string {
	notes := *r
	notes.Output, notes.Omitted, notes.OmittedAt = "", 0, 0
	room := budget - len(notes.Text()) - noteRoom
	if screen != "" {
		screen = cut(min(budget/2, room), screen)
		room -= len(screen)
	}
	shown := *r
	if r.Omitted > 0 || len(r.Output) > room {
		first, second, omitted := cutResult(r, room)
		shown.Output, shown.OmittedAt, shown.Omitted = first+second, len(first), omitted
		if reader != "" {
			screen = fmt.Sprintf("[what is omitted begins at offset %d of %s]\n",
				from+int64(len(first)), reader) + screen
		}
	}
	return shown.Text() + screen
}

// cutResult returns the head and the tail of a Result's output, and how many bytes are missing
// between the two.
func cutResult(r *sandbox.Result, room int) (first, second string, omitted int64) {
	first, second = r.Output, r.Output
	if r.Omitted > 0 {
		first, second = r.Output[:r.OmittedAt], r.Output[r.OmittedAt:]
	}
	if len(r.Output) > room {
		first, second = head(first, room/2), tail(second, room-room/2)
	}
	return first, second, int64(len(r.Output)-len(first)-len(second)) + r.Omitted
}

// cut shortens a text to at most size bytes, if it is longer: it has its head and its tail.
func cut(size int, s string) string {
	if len(s) <= size {
		return s
	}
	const room = 60 // for the note
	size = max(size-room, 0)
	first, second := head(s, size/2), tail(s, size-size/2)
	if first != "" && !strings.HasSuffix(first, "\n") {
		first += "\n"
	}
	return first + fmt.Sprintf("[… %d bytes omitted …]\n", len(s)-len(first)-len(second)) + second
}

// head returns the first most bytes of s at most: whole runes, and whole lines if one ends near.
func head(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := max(most, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	s = s[:n]
	if i := strings.LastIndexByte(s, '\n') + 1; i > 0 && len(s)-i <= near(most) {
		s = s[:i]
	}
	return s
}

// tail returns the last most bytes of s at most, as head does.
func tail(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := len(s) - max(most, 0)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	s = s[n:]
	if i := strings.IndexByte(s, '\n') + 1; i > 0 && i <= near(most) {
		s = s[i:]
	}
	return s
}

// near is how much of most bytes may be left out for the sake of a whole line.
func near(most int) int { return min(most/8, 1<<10) }
