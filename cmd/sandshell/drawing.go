package main

import "strings"

// drawing passes what draws on a terminal: text and control sequences (CSI) that move, erase and
// colour. It drops strings (OSC, DCS and so on), which set titles and the clipboard, questions,
// which a terminal answers as if they were typed, and the control characters of C1. It also drops
// modes that change what the terminal sends, such as those of the mouse: they would stay.
type drawing struct {
	state byte // of the sequence that is open: 0, ESC, '[' (CSI), ']' (a string)
	open  []byte
}

// maxSequence is how long a control sequence may be. A longer one is dropped.
const maxSequence = 256

const esc = '\x1b'

// pass returns the part of the text that draws. A sequence may go on in the next text.
func (d *drawing) pass(text string) string {
	var out []byte
	for _, r := range text {
		switch d.state {
		case 0:
			switch {
			case r == esc:
				d.state = esc
			case r >= ' ' && r < 0x7f || r > 0x9f || r == '\n' || r == '\r' || r == '\t' ||
				r == '\b':
				out = append(out, string(r)...)
			}
		case esc:
			d.state = 0
			switch {
			case r == '[':
				d.state, d.open = '[', append(d.open[:0], esc, '[')
			case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
				d.state = ']'
			case r == '7' || r == '8' || r == 'M' || r == 'D' || r == 'E':
				out = append(out, esc, byte(r))
			case r == '(' || r == ')':
				d.state = byte(r)
			}
		case '(', ')': // a character set
			if r == 'B' || r == '0' {
				out = append(out, esc, d.state, byte(r))
			}
			d.state = 0
		case ']':
			if r == '\a' || r == 0x9c {
				d.state = 0
			} else if r == esc {
				d.state = '\\'
			}
		case '\\': // ESC in a string: ESC \ ends it
			d.state = ']'
			if r == '\\' {
				d.state = 0
			}
		case '[':
			switch {
			case r >= 0x40 && r <= 0x7e:
				d.state = 0
				if len(d.open) < maxSequence && draws(string(d.open[2:]), r) {
					out = append(append(out, d.open...), byte(r))
				}
			case r >= 0x20 && r < 0x40:
				if len(d.open) < maxSequence {
					d.open = append(d.open, byte(r))
				}
			default: // broken
				d.state = 0
			}
		}
	}
	return string(out)
}

// draws reports whether a CSI sequence with these parameters and this end only draws.
func draws(parameters string, end rune) bool {
	private := strings.HasPrefix(parameters, "?")
	switch end {
	case 'c', 'n', 't', 'p', 'q', 'x', 'y', 'i':
		return false // questions, resets, windows, printers
	case 'h', 'l':
		for mode := range strings.SplitSeq(strings.TrimPrefix(parameters, "?"), ";") {
			if private && !screenModes[mode] || !private && mode != insertMode {
				return false
			}
		}
		return true
	}
	// With other characters, the sequence is a private one of the terminal.
	return strings.Trim(parameters, "0123456789;:") == ""
}

// insertMode moves what is behind the cursor when text is written.
const insertMode = "4"

// screenModes are the private modes that only draw.
var screenModes = map[string]bool{
	"5":  true,                                           // reverse video
	"7":  true,                                           // lines wrap
	"12": true,                                           // the cursor blinks
	"25": true,                                           // the cursor is shown
	"47": true, "1047": true, "1048": true, "1049": true, // the alternate screen
	"2026": true, // draw at once
}

// drawn undoes what a drawing may have changed: the alternate screen, colours, the character set,
// modes, and the region that scrolls, which moves the cursor.
const drawn = "\x1b[?2026l\x1b[?1049l\x1b[0m\x1b(B\x1b[4l\x1b[?5l\x1b[?7h" +
	"\x1b7\x1b[r\x1b8\x1b[?25h\r\n"
