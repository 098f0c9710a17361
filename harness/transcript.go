package harness

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/internal/terminal"
)

// A transcript is the commands of a recording.
type transcript struct {
	Steps []step
	More  int // commands after these
}

// A step is a command with what the terminal showed until the next one began. All texts are safe to
// show.
type step struct {
	Session string  // of the box: "main", "session-1", "job-1"
	Command string  // its head and tail, if it is long
	At      float64 // when it began, in seconds since the start of the recording
	Seconds float64 // what it took; 0 if it did not end
	// End says how it ended: "exit status 0", "not executed: ...". It is empty if it did not end.
	End     string
	OK      bool     // it ended with exit status 0
	Typed   []string // what was typed to it; "" is what may be a secret, which no recording has
	Output  string
	Omitted int64 // bytes in the middle of the output
}

// What a transcript holds at most. The recording has the rest.
const (
	stepsMax      = 1000
	stepOutputMax = 8 << 10   // bytes of a step's output
	transcriptMax = 512 << 10 // bytes of all output
	commandMax    = 4 << 10   // bytes of a command
	typedMax      = 50        // texts that were typed to a step
	typedTextMax  = 500       // bytes of such a text
)

// A transcriber makes a transcript of a recording's events.
type transcriber struct {
	transcript
	output headtail.Buffer
	left   int            // of transcriptMax
	echo   bool           // the recording has not yet shown the command as a line of its own
	open   map[string]int // by session: the step that has not ended; -1 is a step that is left out
}

// commandEnd matches the marker at the end of a command: see package recording.
var commandEnd = regexp.MustCompile(
	`^(exit status -?\d+|ended) after (\d+\.\d+) s(: .*)?$|^not executed: |` +
		`^the previous command had ended`)

// event adds an event of the recording.
func (t *transcriber) event(at float64, code, data string) {
	switch {
	case code == "m":
		session, text, _ := strings.Cut(data, ": ")
		if i, ok := t.open[session]; ok && commandEnd.MatchString(text) {
			delete(t.open, session)
			if i >= 0 {
				t.Steps[i].end(text)
			}
		} else {
			t.begin(at, session, text)
		}
	case len(t.Steps) == 0 || t.More > 0:
	case code == "o" && t.echo:
		t.echo = !strings.HasPrefix(data, "\x1b[1m$ ")
	case code == "o":
		t.output.WriteString(data)
	case code == "i":
		if s := &t.Steps[len(t.Steps)-1]; len(s.Typed) < typedMax {
			s.Typed = append(s.Typed, clip(data, typedTextMax))
		}
	}
}

// begin begins a step.
func (t *transcriber) begin(at float64, session, command string) {
	if t.open == nil {
		t.open, t.left = map[string]int{}, transcriptMax
	}
	if len(t.Steps) == stepsMax {
		t.open[session] = -1
		t.More++
		return
	}
	t.endOutput()
	t.open[session] = len(t.Steps)
	t.Steps = append(t.Steps, step{Session: clip(session, 100), Command: clip(command, commandMax),
		At: at})
	t.output.Max, t.echo = min(stepOutputMax, t.left), true
}

// endOutput gives the last step its output.
func (t *transcriber) endOutput() {
	if len(t.Steps) == 0 {
		return
	}
	s := &t.Steps[len(t.Steps)-1]
	if s.Output != "" || s.Omitted > 0 {
		return
	}
	head, tail, omitted := t.output.HeadTail()
	s.Output, s.Omitted = terminal.Text([]byte(head)), omitted
	if omitted > 0 {
		s.Output += "\n…\n" + terminal.Text([]byte(tail))
	} else {
		s.Output = terminal.Text([]byte(head + tail))
	}
	s.Output = printable.Text(s.Output)
	t.left = max(t.left-len(head)-len(tail), 0)
	t.output.Reset()
}

// end returns the transcript.
func (t *transcriber) end() transcript {
	t.endOutput()
	return t.transcript
}

// end notes how the command has ended.
func (s *step) end(text string) {
	m := commandEnd.FindStringSubmatch(text)
	if m[1] == "" {
		s.End = clip(text, typedTextMax)
		return
	}
	s.End, s.OK = m[1]+clip(m[3], typedTextMax), m[1] == "exit status 0"
	s.Seconds, _ = strconv.ParseFloat(m[2], 64)
}

// clip returns the head and tail of a text, at most max bytes, safe to show.
func clip(text string, max int) string {
	if len(text) <= max {
		return printable.Text(text)
	}
	b := headtail.Buffer{Max: max}
	b.WriteString(text)
	head, tail, omitted := b.HeadTail()
	return printable.Text(head) + " … " + strconv.FormatInt(omitted, 10) + " bytes … " +
		printable.Text(tail)
}
