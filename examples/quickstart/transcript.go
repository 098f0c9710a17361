package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A transcript shows what goes on. As an io.Writer it takes the raw output of commands, as it comes, and shows it line by line.
type transcript struct {
	w        io.Writer
	chapters int
	line     []byte // of the output, as far as it has come
}

func (t *transcript) title(format string, args ...any) {
	t.chapters++
	fmt.Fprintf(t.w, "\n== %d. %s\n", t.chapters, fmt.Sprintf(format, args...))
}

func (t *transcript) say(format string, args ...any) {
	fmt.Fprintf(t.w, "%s\n", fmt.Sprintf(format, args...))
}

// command shows what is typed at the shell's prompt.
func (t *transcript) command(text string) {
	fmt.Fprintf(t.w, "\n$ %s\n", strings.ReplaceAll(text, "\n", "\n> "))
}

// Write implements io.Writer. A session's terminal ends lines with "\n" alone. Programs that draw progress go back to the line's
// begin with "\r"; what they draw over is not shown.
func (t *transcript) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c == '\n':
			t.endLine()
			continue
		case bytes.HasSuffix(t.line, []byte("\r")):
			t.line = t.line[:0]
		}
		t.line = append(t.line, c)
	}
	return len(p), nil
}

func (t *transcript) endLine() {
	fmt.Fprintf(t.w, "    %s\n", bytes.TrimSuffix(t.line, []byte("\r")))
	t.line = t.line[:0]
}

// outcome shows what became of a command.
func (t *transcript) outcome(res *sandbox.Result, err error) {
	if len(t.line) > 0 {
		t.endLine() // a question ends with no "\n"
	}
	if res == nil {
		return
	}
	what := res.State.String()
	switch res.State {
	case sandbox.Exited:
		what = fmt.Sprintf("exited with %d in %s", res.ExitCode, res.Cwd)
	case sandbox.Waiting:
		what = fmt.Sprintf("waiting for a %s", res.Awaits)
	}
	if err != nil {
		what += "; the error is: " + err.Error()
	}
	fmt.Fprintf(t.w, "  -> %v: %s\n", res.Duration.Round(time.Millisecond), what)
}
