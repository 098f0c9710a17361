package tools

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A numberedLine is a line of a file.
type numberedLine struct {
	number int
	text   []byte
}

// lines returns the lines of a text that match, with those around them, as grep does: a number and
// ":" before a line that matches, a number and "-" before the others. If lines around the matches
// are wanted, "--" stands for those that are left out.
func (s *search) lines(data []byte) string {
	var b strings.Builder
	var before []numberedLine // the last lines that are not shown, at most args.Context
	matching, more := 0, 0
	last, after := 0, 0 // the number of the last line shown, and how many are to follow a match
	for number := 1; len(data) > 0 && b.Len() <= s.config.MaxReply; number++ {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		at := s.pattern.FindIndex(line)
		switch {
		case at != nil && matching == s.matching:
			more++
		case at != nil:
			if s.args.Context > 0 && last > 0 && number-len(before) > last+1 {
				b.WriteString("--\n")
			}
			for _, l := range before {
				fmt.Fprintf(&b, "%d-%s\n", l.number, shownPart(l.text, 0))
			}
			fmt.Fprintf(&b, "%d:%s\n", number, shownPart(line, at[0]))
			before = before[:0]
			matching, last, after = matching+1, number, s.args.Context
		case after > 0:
			fmt.Fprintf(&b, "%d-%s\n", number, shownPart(line, 0))
			last, after = number, after-1
		case s.args.Context > 0:
			if len(before) == s.args.Context {
				before = append(before[:0], before[1:]...)
			}
			before = append(before, numberedLine{number, line})
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, "[%d more lines of this file match: give its path to see them]\n", more)
	}
	return b.String()
}

// maxPart is how many bytes of a line a search shows.
const maxPart = 300

// shownPart returns a line or, if that is long, the part around an offset.
func shownPart(line []byte, at int) string {
	if len(line) <= maxPart {
		return shownLine(string(line), len(line), maxPart)
	}
	begin := max(0, min(at-maxPart/3, len(line)-maxPart))
	for begin < at && !utf8.RuneStart(line[begin]) {
		begin++
	}
	end := min(begin+maxPart, len(line))
	for end < len(line) && end > begin && !utf8.RuneStart(line[end]) {
		end--
	}
	text := shownLine(string(line[begin:end]), end-begin, end-begin)
	if begin > 0 {
		text = "…" + text
	}
	if end < len(line) {
		text += "…"
	}
	return text + fmt.Sprintf(" [a line of %d bytes]", len(line))
}
