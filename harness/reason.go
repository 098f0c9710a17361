package harness

import (
	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/printable"
)

// reasonMax bounds Result.Reason, in bytes.
const reasonMax = 600

// reasonOf makes a reason of an error's text, which may hold what a box has said: its head and
// tail, without what would change a terminal.
func reasonOf(text string) string { return shorten(printable.Text(shorten(text))) }

// shorten cuts what is too long for a reason out of the middle.
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
