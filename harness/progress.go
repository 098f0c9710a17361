package harness

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/printable"
	"golang.org/x/term"
)

// A progress shows how far a run is: by a bar in one line of a terminal, or by a line for each task
// that ends.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	err      error          // the first of w, which gets nothing more
	width    int            // of the terminal, in columns; 0 means that w is no terminal
	all      int            // the number of tasks
	ended    int            // the number of tasks that have a result
	counts   map[Status]int // of the tasks that ended in this run
	underway []string       // IDs of tasks
	began    time.Time
}

func newProgress(w io.Writer, all, ended int) *progress {
	p := &progress{w: guard.Writer("Config.Progress", w), all: all, ended: ended,
		counts: map[Status]int{}, began: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.width = 80
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			p.width = width
		}
	}
	if ended > 0 {
		p.printfLocked("%d of %d tasks have a result already\n", ended, all)
	}
	return p
}

func (p *progress) taskBegan(task string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underway = append(p.underway, task)
	p.drawLocked()
}

func (p *progress) taskEnded(r Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	p.counts[r.Status]++
	p.underway = slices.DeleteFunc(p.underway, func(t string) bool { return t == r.id().String() })
	if p.width == 0 {
		p.printfLocked("%d/%d %s %s (%.1f s)%s\n", p.ended, p.all, r.Status, r.id(), r.Seconds,
			withPrefix(": ", firstLine(r.Reason)))
		return
	}
	if r.Status != Pass {
		p.printfLocked("\r\x1b[K%s\n", truncate(fmt.Sprintf("%s %s%s", r.Status, r.id(),
			withPrefix(": ", firstLine(r.Reason))), p.width))
	}
	p.drawLocked()
}

// late says of a task that its agent does not return.
func (p *progress) late(task string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := task + ": its time is over, and its agent does not return: it is waited for"
	if p.width == 0 {
		p.printfLocked("%s\n", line)
		return
	}
	p.printfLocked("\r\x1b[K%s\n", truncate(line, p.width))
	p.drawLocked()
}

const barWidth = 20

// drawLocked draws the bar, if w is a terminal.
func (p *progress) drawLocked() {
	if p.width == 0 {
		return
	}
	full := 0
	if p.all > 0 {
		full = barWidth * p.ended / p.all
	}
	line := fmt.Sprintf("[%s%s] %d/%d %s %v %s", strings.Repeat("#", full),
		strings.Repeat("-", barWidth-full), p.ended, p.all,
		countsText(p.counts), time.Since(p.began).Round(time.Second), strings.Join(p.underway, " "))
	p.printfLocked("\r\x1b[K%s", truncate(line, p.width-1))
}

// end clears the bar's line, and returns the writer's first error.
func (p *progress) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width > 0 {
		p.printfLocked("\r\x1b[K")
	}
	return p.err
}

func (p *progress) printfLocked(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// countsText formats counts: "3 pass, 1 fail".
func countsText(counts map[Status]int) string {
	var parts []string
	for _, s := range Statuses {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// firstLine returns the first line of s, with control characters escaped.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return printable.Line(line)
}

// withPrefix returns prefix and s, or "" if s is "".
func withPrefix(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// truncate returns s, or its first n-1 runes and "…" if it has more than n.
func truncate(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:max(n-1, 0)]) + "…"
	}
	return s
}
