package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sandshell/sandshell/sandbox"
)

// noteRoom is how many bytes of a reply are reserved for the notes around a text.
const noteRoom = 200

// resultText returns a Result as text of at most most bytes. from is the offset of its output in
// the log. reader is the name of the tool that reads the log, or "" if there is none. screen is
// what a full-screen program shows.
func resultText(r *sandbox.Result, from int64, reader string, most int, screen string) string {
	notes := *r
	notes.Output, notes.Omitted, notes.OmittedAt = "", 0, 0
	room := most - len(notes.Text()) - noteRoom
	shown := *r
	if screen != "" {
		shown.FullScreen = false // the note of Text says that the screen is not there
		screen = screenNote(r) + shorten(min(most/2, room), screen)
		room -= len(screen)
	}
	if r.Omitted > 0 || len(r.Output) > room {
		first, second, omitted := cutResult(r, room)
		shown.Output, shown.OmittedAt, shown.Omitted = first+second, len(first), omitted
		if reader != "" {
			screen = fmt.Sprintf("[the omitted part begins at offset %d: read it with %s]\n",
				from+int64(len(first)), reader) + screen
		}
	}
	return shown.Text() + screen
}

// screenNote returns the note before the screen of a full-screen program.
func screenNote(r *sandbox.Result) string {
	if r.State == sandbox.Exited {
		return "[a full-screen program has ended, and has left this screen]\n"
	}
	return "[a full-screen program: this is its screen]\n"
}

// cutResult returns the head and the tail of a Result's output, together at most room bytes, and
// how many bytes are missing between them.
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

// shorten returns s if it has at most size bytes. Otherwise it returns the head and the tail of s
// with a note between them, in at most size bytes.
func shorten(size int, s string) string {
	if len(s) <= size {
		return s
	}
	const note = 60 // bytes
	size = max(size-note, 0)
	first, second := head(s, size/2), tail(s, size-size/2)
	if first != "" && !strings.HasSuffix(first, "\n") {
		first += "\n"
	}
	return first + fmt.Sprintf("[… %d bytes omitted …]\n", len(s)-len(first)-len(second)) + second
}

// head returns at most the first most bytes of s. It cuts between runes, and between lines if a
// line ends within lineSlack of the cut.
func head(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := max(most, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	s = s[:n]
	if i := strings.LastIndexByte(s, '\n') + 1; i > 0 && len(s)-i <= lineSlack(most) {
		s = s[:i]
	}
	return s
}

// tail returns at most the last most bytes of s. It cuts as head does.
func tail(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := len(s) - max(most, 0)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	s = s[n:]
	if i := strings.IndexByte(s, '\n') + 1; i > 0 && i <= lineSlack(most) {
		s = s[i:]
	}
	return s
}

// lineSlack returns how many of most bytes head and tail may leave out to cut between lines.
func lineSlack(most int) int { return min(most/8, 1<<10) }
