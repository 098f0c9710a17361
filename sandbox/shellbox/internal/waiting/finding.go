package waiting

import (
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// A Finding is the result of one look.
type Finding struct {
	At   time.Time
	Took time.Duration
	Seen time.Time // the command's last activity before the look
	Busy bool      // input or output from before the look is still on its way

	// Wait is without Turns if the thread may go on by itself, because they may change. Of a guess,
	// only Turns is set: those of all processes of the terminal.
	Wait      proc.Wait
	Certainty Certainty // of Wait
	Reader    Reader    // of Wait
	Idle      bool      // the shell waits for its next line
	Stopped   bool      // the shell is stopped
	Execed    bool      // another interactive shell is in the place of ours
}

// same reports whether two looks have found the same, with nothing in between.
func (f *Finding) same(g *Finding) bool {
	a, b := f.Wait, g.Wait
	a.Modes, b.Modes = proc.Modes{}, proc.Modes{}
	return a == b && f.Certainty == g.Certainty && f.Idle == g.Idle && f.Execed == g.Execed &&
		f.Seen.Equal(g.Seen)
}

// Found reports whether something reads the terminal.
func (f *Finding) Found() bool { return f.Certainty != Unasked }

// A Shell is the session's shell, for a look. A text is "" if it is not known.
type Shell struct {
	PID   int
	Pipe  string // what it reads when it is idle, as Reads of a proc.Look
	Image string // its program, as Image of a proc.Look
}

// Judge sets what a look has found. shows reports what the terminal shows: an unfinished line, or a
// full screen.
func (f *Finding) Judge(l *proc.Look, sh Shell, shows func() (partial, full bool)) {
	if l.Gone {
		return
	}
	f.Stopped, f.Idle = l.Stopped, l.Reads != "" && l.Reads == sh.Pipe
	if len(l.Waits) > 0 {
		for _, wait := range l.Waits {
			if c := certaintyOf(&wait, l.Runs); c > f.Certainty {
				f.Certainty, f.Wait = c, wait
			}
		}
		f.Reader = Reader{PID: f.Wait.PID, Kind: kindOf(f.Wait.Modes)}
		f.Execed = f.Wait.PID == sh.PID && sh.Image != "" && l.Image != sh.Image &&
			dialect.Interactive(l.Args)
		if f.Certainty == MayWork {
			f.Wait.Turns = 0
		}
	} else if l.Hidden && !f.Idle && !l.Runs {
		f.guess(l, shows)
	}
}

// certaintyOf returns the certainty of a wait. runs is the Look's Runs. What runs at a look is
// often about to end or to wait (the seq of seq 100 | less), on a busy machine for several looks.
// So the command gets the time of one whose reader may go on.
func certaintyOf(w *proc.Wait, runs bool) Certainty {
	switch {
	case !w.Alone, w.OthersRun && runs:
		return MayWork
	case w.OthersRun:
		return OthersWork
	}
	return Certain
}

// guess says what processes may wait for that do not show it.
func (f *Finding) guess(l *proc.Look, shows func() (partial, full bool)) {
	partial, full := shows()
	kind := kindOf(l.HiddenModes)
	switch {
	case !l.Modes.Known:
	case kind == sandbox.Secret:
		f.Certainty = Certain
	case partial || full || kind == sandbox.Keys:
		f.Certainty = MayWork
	}
	if f.Found() {
		f.Wait, f.Reader = proc.Wait{Turns: l.Total}, Reader{Kind: kind, Turns: l.Total}
	}
}

// kindOf says what a program that reads a terminal in these modes waits for.
func kindOf(m proc.Modes) sandbox.InputKind {
	switch {
	case m.Raw:
		return sandbox.Keys
	case m.NoEcho:
		return sandbox.Secret
	}
	return sandbox.Line
}
