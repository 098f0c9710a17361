package jupyter

import (
	"html"
	"regexp"
	"strings"
)

// What of HTML is no text. execute_cli.py has the same.
var (
	hiddenHTML = regexp.MustCompile(`(?is)<!--.*?-->|<(script|style|head)\b.*?</(script|style|head)\s*>`)
	cellHTML   = regexp.MustCompile(`(?i)</t[dh]\s*>\s*`)
	breakHTML  = regexp.MustCompile(`(?i)(\s*</?(br|p|div|tr|li|h[1-6]|ul|ol|table|thead|tbody|pre)\b` + rest + `\s*)+`)
	tagHTML    = regexp.MustCompile(`</?[a-zA-Z!]` + rest)
)

// rest of a tag: a ">" in quotes does not end it.
const rest = `("[^"]*"|'[^']*'|[^"'>])*>`

// textOfHTML returns the text of a piece of HTML, as a person would read it: without tags, scripts
// and styles; a table has a line for each row, and tabs between its cells.
func textOfHTML(source string) string {
	source = hiddenHTML.ReplaceAllString(source, "")
	source = cellHTML.ReplaceAllString(source, "\t")
	source = breakHTML.ReplaceAllString(source, "\n")
	source = tagHTML.ReplaceAllString(source, "")
	return strings.TrimSpace(html.UnescapeString(source))
}
