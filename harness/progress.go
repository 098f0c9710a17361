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

// A progress tells how far a run is: by a bar that is drawn anew in the same line of a terminal, or
// by a line for each task that ends.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	err      error // w's first: it gets nothing more
	width    int   // of the terminal; 0: it is none
	all      int
	ended    int
	counts   map[Status]int
	underway []string
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
		p.printf("%d of %d tasks have a result already\n", ended, all)
	}
	return p
}

func (p *progress) begin(task string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underway = append(p.underway, task)
	p.draw()
}

func (p *progress) done(r Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	p.counts[r.Status]++
	p.underway = slices.DeleteFunc(p.underway, func(t string) bool { return t == r.Task })
	if p.width == 0 {
		p.printf("%d/%d %s %s (%.1f s)%s\n", p.ended, p.all, r.Status, r.Task, r.Seconds,
			after(": ", firstLine(r.Reason)))
		return
	}
	if r.Status != Pass {
		p.printf("\r\x1b[K%s\n", cut(fmt.Sprintf("%s %s%s", r.Status, r.Task,
			after(": ", firstLine(r.Reason))), p.width))
	}
	p.draw()
}

const barWidth = 20

// draw draws the bar, on a terminal.
func (p *progress) draw() {
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
	p.printf("\r\x1b[K%s", cut(line, p.width-1))
}

// end leaves the bar's line, and returns what the writer has failed with.
func (p *progress) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width > 0 {
		p.printf("\r\x1b[K")
	}
	return p.err
}

func (p *progress) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// countsText is "3 pass, 1 fail".
func countsText(counts map[Status]int) string {
	var parts []string
	for _, s := range Statuses {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// firstLine is the first line of s, safe to print.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return printable.Line(line)
}

// after puts prefix before s if there is one.
func after(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// cut cuts s to n runes.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:max(n-1, 0)]) + "…"
	}
	return s
}
