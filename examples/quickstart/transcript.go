package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/sandshell/sandshell/sandbox"
)

// A transcript prints the tour. On a terminal it uses colours, unless NO_COLOR is set
// (no-color.org).
type transcript struct {
	w        *os.File
	colours  bool
	chapters int
}

func newTranscript(w *os.File) *transcript {
	return &transcript{w: w, colours: term.IsTerminal(int(w.Fd())) && os.Getenv("NO_COLOR") == "" &&
		os.Getenv("TERM") != "dumb"}
}

// The colours are the parameters of SGR control sequences.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (t *transcript) colour(colour, text string) string {
	if !t.colours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// title prints the title of the next chapter.
func (t *transcript) title(title string) {
	t.chapters++
	fmt.Fprintf(t.w, "\n%s\n", t.colour(bold, fmt.Sprintf("== %d. %s", t.chapters, title)))
}

// say prints an explanation.
func (t *transcript) say(format string, args ...any) { fmt.Fprintf(t.w, "\n"+format+"\n", args...) }

// command prints a command of the shell.
func (t *transcript) command(text string) {
	fmt.Fprintf(t.w, "\n  %s\n", t.colour(bold, "$ "+text))
}

// input prints what is typed into a program.
func (t *transcript) input(text string) {
	fmt.Fprintf(t.w, "  %s\n", t.colour(bold, fmt.Sprintf("typing %q", text)))
}

// folded is how many lines of a long output are printed: half from its beginning, half from its
// end.
const folded = 6

// output prints what a program has printed.
func (t *transcript) output(text string) {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		hidden := len(lines) - folded
		switch {
		case hidden <= 1 || i < folded/2 || i >= folded/2+hidden:
			fmt.Fprintf(t.w, "    %s\n", line)
		case i == folded/2:
			fmt.Fprintf(t.w, "    %s\n", t.colour(dim, fmt.Sprintf("… %d lines …", hidden)))
		}
	}
}

// result prints a Result: the output, how the command ended, and how long it took.
func (t *transcript) result(res *sandbox.Result, err error) {
	if res == nil {
		return
	}
	t.output(res.Output)
	colour, what := green, fmt.Sprintf("exit status %d", res.ExitCode)
	switch {
	case res.State == sandbox.Waiting && res.MayGoOn:
		colour, what = yellow, fmt.Sprintf("may be waiting for a %v, or still working", res.Awaits)
	case res.State == sandbox.Waiting:
		colour, what = yellow, fmt.Sprintf("waiting for a %v", res.Awaits)
	case res.State == sandbox.Running:
		colour, what = yellow, "running"
	case res.ExitCode != 0:
		colour = red
	}
	if err != nil {
		colour, what = red, what+", "+err.Error()
	}
	fmt.Fprintf(t.w, "  %s\n", t.colour(colour, fmt.Sprintf("-> %s after %s", what,
		rounded(res.Duration))))
}

// rounded returns a duration as text, rounded for people.
func rounded(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// leaveOut says why a chapter is left out.
func (t *tour) leaveOut(format string, args ...any) {
	t.say("Left out: "+format+".", args...)
	t.leftOut = append(t.leftOut, fmt.Sprintf(format, args...))
}
