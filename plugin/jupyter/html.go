package jupyter

import (
	"html"
	"regexp"
	"strings"
)

// These expressions match what is no text in HTML. execute_cli.py has the same expressions.
var (
	hiddenHTML = regexp.MustCompile(`(?i)^<(script|style|head)\b`)
	shownHTML  = regexp.MustCompile(`(?i)</(script|style|head)\s*>`)
	cellHTML   = regexp.MustCompile(`(?i)</t[dh]\s*>\s*`)
	breakHTML  = regexp.MustCompile(
		`(?i)(\s*</?(br|p|div|tr|li|h[1-6]|ul|ol|table|thead|tbody|pre)\b` + rest + `\s*)+`)
	tagHTML = regexp.MustCompile(`</?[a-zA-Z!]` + rest)
)

// rest matches the rest of a tag. A ">" in quotes does not end the tag.
const rest = `("[^"]*"|'[^']*'|[^"'>])*>`

// htmlMax is how many bytes of HTML textOfHTML reads.
const htmlMax = 1 << 20

// textOfHTML returns the text of HTML as a reader sees it, without tags, scripts and styles. A
// table has a line for each row, and tabs between its cells.
func textOfHTML(source string) string {
	if len(source) > htmlMax {
		source = strings.ToValidUTF8(source[:htmlMax], "")
	}
	source = withoutHidden(source)
	source = cellHTML.ReplaceAllString(source, "\t")
	source = breakHTML.ReplaceAllString(source, "\n")
	source = tagHTML.ReplaceAllString(source, "")
	return strings.TrimSpace(html.UnescapeString(source))
}

// withoutHidden removes comments, scripts, styles and the head. It searches for each end once, so
// that many begins without an end take no longer than one.
func withoutHidden(source string) string {
	ends := shownHTML.FindAllStringIndex(source, -1)
	lastComment := strings.LastIndex(source, "-->")
	var b strings.Builder
	for at := 0; ; {
		next := strings.IndexByte(source[at:], '<')
		if next < 0 {
			return b.String() + source[at:]
		}
		b.WriteString(source[at : at+next])
		at += next
		size := 1
		if strings.HasPrefix(source[at:], "<!--") && lastComment >= at+len("<!--") {
			size = len("<!--") + strings.Index(source[at+len("<!--"):], "-->") + len("-->")
		} else if begin := hiddenHTML.FindStringIndex(
			source[at:min(len(source), at+len("<script>"))]); begin != nil {
			for len(ends) > 0 && ends[0][0] < at+begin[1] {
				ends = ends[1:]
			}
			if len(ends) > 0 {
				size = ends[0][1] - at
			}
		}
		if size == 1 {
			b.WriteByte('<')
		}
		at += size
	}
}
