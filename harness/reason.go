package harness

import (
	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/printable"
)

// reasonMax bounds Result.Reason, in bytes.
const reasonMax = 600

// reasonOf returns the text of an error as a Result.Reason: its head and tail, with control
// characters escaped, because the text may come from the box.
func reasonOf(text string) string { return shorten(printable.Text(shorten(text))) }

// shorten returns at most reasonMax bytes of text. It cuts out the middle.
func shorten(text string) string {
	if len(text) <= reasonMax {
		return text
	}
	const gap = " … "
	b := headtail.Buffer{Max: reasonMax - len(gap)}
	b.WriteString(text)
	head, tail, _ := b.HeadTail()
	return head + gap + tail
}
