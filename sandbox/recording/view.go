package recording

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A track is one session or job in a cast.
type track struct {
	id     string
	cast   *cast // nil: it could not be made
	shared bool  // other tracks have the same cast

	// Only the cast's goroutine uses these.
	rows, cols int
	partial    []byte // the beginning of a rune or of a control sequence whose rest has not come
	alternate  bool   // a program draws the whole screen
}

// shownLine is the code of an event whose text the recording itself shows, on a line of its own.
const shownLine = '$'

// begin records a command, as a marker and as a person would see it typed.
func (t *track) begin(command string) {
	add(t.cast, t, 'm', t.id+": "+command)
	add(t.cast, t, shownLine, command)
}

// end records how the command has ended.
func (t *track) end(how string) { add(t.cast, t, 'm', t.id+": "+how) }

// Write records output. It never fails: errors of the recording are not the command's.
func (t *track) Write(p []byte) (int, error) {
	add(t.cast, t, 'o', p)
	return len(p), nil
}

func (t *track) input(text string) { add(t.cast, t, 'i', text) }

func (t *track) resize(rows, cols int) { add(t.cast, t, 'r', fmt.Sprintf("%dx%d", cols, rows)) }

// close closes the track's cast if no other track has it.
func (t *track) close() {
	if !t.shared {
		t.cast.close()
	}
}

// A castView makes the lines of a cast. It knows what the cast's terminal shows.
type castView struct {
	track      *track // the one whose output came last
	rows, cols int
	midLine    bool
}

// append appends the lines of an event to out.
func (v *castView) append(out []byte, e event, text []byte) []byte {
	switch e.code {
	case 'o':
		return v.output(out, e, text)
	case shownLine:
		if e.track.alternate { // a program that was killed has not left it
			e.track.alternate = false
			out = v.show(out, e, []byte("\x1b[?1049l"))
		}
		command := strings.ReplaceAll(visible(string(text)), "\n", "\n> ")
		out = v.switchTo(out, e)
		return v.show(out, e, []byte("\x1b[1m$ "+command+"\x1b[0m\n"))
	case 'r':
		fmt.Sscanf(string(text), "%dx%d", &e.track.cols, &e.track.rows)
		return v.size(out, e)
	case 'm': // after all output
		if rest := e.track.partial; len(rest) > 0 {
			e.track.partial = nil
			out = v.show(out, e, rest)
		}
	}
	return appendEvent(out, e, e.code, string(text))
}

// visible returns a command with visible signs, such as ␛, for the control characters in it. Those
// of the C1 range, and those that change the direction of text, are written as in Go: \u009b.
func visible(command string) string {
	var b strings.Builder
	for _, r := range command {
		switch {
		case r == 0x7f:
			b.WriteRune('␡')
		case r < ' ' && r != '\n' && r != '\t':
			b.WriteRune('␀' + r)
		case unicode.In(r, unicode.Cc, unicode.Bidi_Control) && r >= 0x80:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// output appends what a program has printed.
func (v *castView) output(out []byte, e event, text []byte) []byte {
	t := e.track
	if len(t.partial) > 0 {
		text = append(t.partial, text...)
		t.partial = nil
	}
	if n := incomplete(text); n > 0 {
		t.partial = append([]byte(nil), text[len(text)-n:]...)
		text = text[:len(text)-n]
	}
	if len(text) == 0 {
		return out
	}
	if v.track != t {
		out = v.switchTo(out, e)
	}
	return v.show(out, e, text)
}

// switchTo makes the terminal show the event's track, from the beginning of a line.
func (v *castView) switchTo(out []byte, e event) []byte {
	before := v.track
	v.track = e.track
	if v.midLine {
		out = v.show(out, e, []byte("\n"))
	}
	if before != nil && before != e.track {
		out = v.show(out, e, []byte("\x1b[2m-- "+e.track.id+" --\x1b[0m\n"))
	}
	if v.rows == 0 { // the header says it
		v.rows, v.cols = e.track.cast.rows, e.track.cast.cols
	}
	return v.size(out, e)
}

// size gives the terminal the size of the track that it shows.
func (v *castView) size(out []byte, e event) []byte {
	if t := e.track; v.track == t && (v.rows != t.rows || v.cols != t.cols) {
		v.rows, v.cols = t.rows, t.cols
		out = appendEvent(out, e, 'r', fmt.Sprintf("%dx%d", t.cols, t.rows))
	}
	return out
}

// show appends text that the terminal shows.
func (v *castView) show(out []byte, e event, text []byte) []byte {
	v.midLine = text[len(text)-1] != '\n'
	out = appendHead(out, e, 'o')
	start := 0
	for i := plainLen(text); i < len(text); i += plainLen(text[i:]) {
		b := text[i]
		r, size := rune(b), 1
		if b >= utf8.RuneSelf {
			if r, size = utf8.DecodeRune(text[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		out = append(out, text[start:i]...)
		switch {
		case b == '\n' && !e.track.alternate:
			out = append(out, `\r\n`...)
		case b == '\x1b':
			e.track.noteScreen(text[i:])
			fallthrough
		default:
			out = appendRune(out, r)
		}
		i += size
		start = i
	}
	return append(append(out, text[start:]...), "\"]\n"...)
}

// plain says which bytes of ASCII a JSON string holds as they are.
var plain = func() (is [256]bool) {
	for b := byte(' '); b < utf8.RuneSelf; b++ {
		is[b] = b != '"' && b != '\\'
	}
	return is
}()

// plainLen returns how many bytes text has before the first that is not plain. It looks at eight
// bytes at a time, since most output is plain.
func plainLen(text []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		quote, backslash := w^ones*'"', w^ones*'\\'
		// The top bit of a byte is set in x-ones&^x where x has a zero, and in w-ones*' '&^w where
		// w has less than a space; a borrow only ever adds bytes behind one of those.
		if (w|(w-ones*' ')&^w|(quote-ones)&^quote|(backslash-ones)&^backslash)&tops != 0 {
			break
		}
	}
	for i < len(text) && plain[text[i]] {
		i++
	}
	return i
}

// appendRune appends a rune that is not plain.
func appendRune(out []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(out, '\\', byte(r))
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	}
	if r < ' ' {
		const digits = "0123456789abcdef"
		return append(out, '\\', 'u', '0', '0', digits[r>>4], digits[r&0xf])
	}
	return utf8.AppendRune(out, r)
}

// appendHead appends the beginning of an event's line.
func appendHead(out []byte, e event, code byte) []byte {
	out = append(out, '[')
	out = strconv.AppendFloat(out, e.at.Seconds(), 'f', 6, 64)
	return append(out, ',', ' ', '"', code, '"', ',', ' ', '"')
}

// appendEvent appends an event's line.
func appendEvent(out []byte, e event, code byte, text string) []byte {
	out = appendHead(out, e, code)
	for _, r := range text {
		if r < utf8.RuneSelf && plain[r] {
			out = append(out, byte(r))
		} else {
			out = appendRune(out, r)
		}
	}
	return append(out, "\"]\n"...)
}
