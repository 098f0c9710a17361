package shellbox

import "regexp"

// openEnd is what the session's own bash, dash or busybox ash says, in English, of a command that
// ends too early: of eval, but for three things that bash says without a word for where. Of a
// script, or of another shell's -c, they say no "eval", and bash says the line.
var openEnd = regexp.MustCompile(
	`(?m)^[\w./-]+: (?:(?:\d+: )?eval: (?:line \d+: )?(?:[Ss]yntax error: )?` +
		`(?:unexpected EOF while looking for matching|unexpected end of file|[Uu]nterminated quoted string|end of file unexpected|` +
		`EOF in backquote substitution|[Mm]issing '(?:\)\)|\})')|` +
		`unexpected EOF while looking for matching|syntax error: unexpected end of file(?:$| from )|warning: here-document at line \d+ delimited by end-of-file)`)

// incomplete reports whether a shell has said so at the end of the output.
func incomplete(output string) bool {
	return openEnd.MatchString(output[max(0, len(output)-2<<10):])
}
