package tools

import "strings"

// unixEnds returns a text in which all lines end in "\n".
func unixEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// replaceText replaces each old in content by new. lines are the numbers of the lines in which they
// began. The first line is 1.
//
// A line end in old matches "\n" and "\r\n". The text with which both old and new begin, and that
// with which both end, stays as it is in content. New lines between them end as the line does in
// which the change begins.
func replaceText(content, old, new string) (changed string, lines []int) {
	old, new = unixEnds(old), unixEnds(new)
	before := commonPrefix(old, new)
	after := commonSuffix(old[len(before):], new[len(before):])
	removed := old[len(before) : len(old)-len(after)]
	added := new[len(before) : len(new)-len(after)]

	var b strings.Builder
	line, at, copied := 1, 0, 0 // at and copied are offsets in content
	advance := func(part string) {
		for piece := range strings.Lines(part) {
			at += len(piece)
			if strings.HasSuffix(piece, "\n") {
				line++
				if content[at-1] == '\r' {
					at++
				}
			}
		}
	}
	for rest := unixEnds(content); ; {
		i := strings.Index(rest, old)
		if i < 0 {
			break
		}
		advance(rest[:i])
		lines = append(lines, line)
		advance(before)
		b.WriteString(content[copied:at])
		if strings.Contains(added, "\n") {
			b.WriteString(strings.ReplaceAll(added, "\n", lineEnd(content, at)))
		} else {
			b.WriteString(added)
		}
		advance(removed)
		copied = at
		advance(after)
		rest = rest[i+len(old):]
	}
	b.WriteString(content[copied:])
	return b.String(), lines
}

// lineEnd returns how the line that holds the offset at ends: "\r\n" or "\n". If it is a last line
// without an end, lineEnd returns how the line before it ends.
func lineEnd(s string, at int) string {
	i := strings.IndexByte(s[at:], '\n') + at
	if i < at {
		i = strings.LastIndexByte(s[:at], '\n')
	}
	if i > 0 && s[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func commonSuffix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return a[len(a)-n:]
}
