package tools

import "strings"

// unixEnds returns the text with lines that end in "\n".
func unixEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// replaceText replaces each old in content by new. It returns the numbers of the lines in which the
// olds began; the first line is 1.
//
// An end of line in old matches any end of line of the file, also "\r\n". Text with which both old
// and new begin or end stays as it is in the file. The lines between get the end of the line in
// which the change begins.
func replaceText(content, old, new string) (changed string, lines []int) {
	old, new = unixEnds(old), unixEnds(new)
	before := commonPrefix(old, new)
	after := commonSuffix(old[len(before):], new[len(before):])
	gone := old[len(before) : len(old)-len(after)]
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
		advance(gone)
		copied = at
		advance(after)
		rest = rest[i+len(old):]
	}
	b.WriteString(content[copied:])
	return b.String(), lines
}

// lineEnd returns the end of the line that holds the offset at: "\r\n" or "\n". For a last line
// without an end, it is the end of the line before.
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
