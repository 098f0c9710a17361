package sandbox

import (
	"fmt"
	"strings"
)

// Text returns the Result as text to show to a person or a model: the output, with a mark where
// bytes were left out. Notes follow, each on a line of its own in brackets: what the command waits
// for or may wait for, that it still runs, its exit status unless that is 0, the new directory of a
// shell that was restarted, input that was not read. If there is no output and the exit status is
// 0, Text is "".
func (r *Result) Text() string {
	var b strings.Builder
	at := min(max(r.OmittedAt, 0), len(r.Output))
	b.WriteString(r.Output[:at])
	if r.Omitted > 0 {
		startLine(&b)
		fmt.Fprintf(&b, "[… %s bytes omitted …]\n", thousands(r.Omitted))
	}
	b.WriteString(r.Output[at:])
	for _, note := range r.notes() {
		startLine(&b)
		b.WriteString("[" + note + "]\n")
	}
	return b.String()
}

// startLine ends an unfinished line.
func startLine(b *strings.Builder) {
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
}

func (r *Result) notes() (notes []string) {
	add := func(when bool, format string, args ...any) {
		if when {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	add(r.FullScreen && r.State != Exited,
		"a full-screen program: its screen is not part of the output")
	add(r.FullScreen && r.State == Exited,
		"a full-screen program has ended and left its screen, which is not part of the output")
	waits := map[InputKind]string{
		Line:   "waiting for a line of input",
		Secret: "waiting for a secret, such as a password, which is not shown",
		Keys:   "waiting for keys",
	}[r.Awaits]
	add(r.State == Waiting && !r.MayGoOn, "%s", waits)
	add(r.State == Waiting && r.MayGoOn, "may be %s, or still working", waits)
	add(r.State == Running, "still running after %.1f s", r.Duration.Seconds())
	add(r.State == Exited && r.ExitCode != 0, "exit status %d", r.ExitCode)
	add(r.OOM, "the system killed a program of it: the memory was full")
	add(r.Incomplete, "the command was incomplete: a quote, a here-document or a compound "+
		"command is left open")
	add(r.Unread == 1, "1 byte of input was not read, and dropped")
	add(r.Unread > 1, "%s bytes of input were not read, and dropped", thousands(int64(r.Unread)))
	add(r.Restarted, "the shell ended; a new one started in %s", r.Cwd)
	return notes
}

// thousands returns n with commas between groups of three digits.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
