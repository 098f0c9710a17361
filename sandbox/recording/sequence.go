package recording

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// privateMode is the beginning of a control sequence that sets or resets private modes of the
// terminal. The alternate screen is such a mode.
const privateMode = "\x1b[?"

// sequenceMax is the length up to which such a sequence is recognized.
const sequenceMax = 24

// noteScreen notes whether a control sequence switches to the alternate screen or back.
func (t *track) noteScreen(sequence []byte) {
	if !bytes.HasPrefix(sequence, []byte(privateMode)) {
		return
	}
	sequence = sequence[len(privateMode):]
	end := bytes.IndexFunc(sequence, notParameter)
	if end < 0 || sequence[end] != 'h' && sequence[end] != 'l' {
		return
	}
	for mode := range strings.SplitSeq(string(sequence[:end]), ";") {
		if mode == "47" || mode == "1047" || mode == "1049" {
			t.alternate = sequence[end] == 'h'
		}
	}
}

func notParameter(r rune) bool { return (r < '0' || r > '9') && r != ';' }

// incomplete returns how many bytes at the end of text are the beginning of a rune, or of a
// sequence that noteScreen needs whole.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return n
			}
			break
		}
	}
	tail := text[max(0, len(text)-sequenceMax):]
	i := bytes.LastIndexByte(tail, '\x1b')
	if i < 0 {
		return 0
	}
	last := tail[i:]
	if strings.HasPrefix(privateMode, string(last)) {
		return len(last)
	}
	if rest, ok := bytes.CutPrefix(last, []byte(privateMode)); ok &&
		bytes.IndexFunc(rest, notParameter) < 0 {
		return len(last)
	}
	return 0
}
