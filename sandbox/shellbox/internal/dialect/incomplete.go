package dialect

import "regexp"

// openEnd matches what the session's own bash, dash or busybox ash says, in English, when a command
// ends too early. The message names eval, except for three messages of bash that name no place.
// About a script, or about the -c of another shell, the message has no "eval", and bash names the
// line.
var openEnd = regexp.MustCompile(
	`(?m)^[\w./-]+: (?:(?:\d+: )?eval: (?:line \d+: )?(?:[Ss]yntax error: )?` +
		`(?:unexpected EOF while looking for matching|unexpected end of file|` +
		`[Uu]nterminated quoted string|end of file unexpected|` +
		`EOF in backquote substitution|[Mm]issing '(?:\)\)|\})')|` +
		`unexpected EOF while looking for matching|` +
		`syntax error: unexpected end of file(?:$| from )|` +
		`warning: here-document at line \d+ delimited by end-of-file)`)

// Incomplete reports whether the end of output says that the shell's command ended too early.
func Incomplete(output string) bool {
	return openEnd.MatchString(output[max(0, len(output)-2<<10):])
}
