package shellbox

import (
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// A finding is the result of one look.
type finding struct {
	// wait is without Turns if the thread may go on by itself, because they may change. Of a guess,
	// only Turns is set: those of all processes of the terminal.
	wait      proc.Wait
	certainty certainty // of wait
	reader    reader    // of wait
	idle      bool      // the shell waits for its next line
	stopped   bool      // the shell is stopped
	execed    bool      // another interactive shell is in the place of ours
	busy      bool      // input or output from before the look is still on its way
	at        time.Time
	took      time.Duration
	seen      time.Time // the command's last activity before the look
}

// same reports whether two looks have found the same, with nothing in between.
func (f *finding) same(g *finding) bool {
	a, b := f.wait, g.wait
	a.Modes, b.Modes = proc.Modes{}, proc.Modes{}
	return a == b && f.certainty == g.certainty && f.idle == g.idle && f.execed == g.execed &&
		f.seen.Equal(g.seen)
}

// found reports whether something reads the terminal.
func (f *finding) found() bool { return f.certainty != unasked }

// look looks once.
func (w *watch) look(seen time.Time) finding {
	f := finding{at: time.Now(), seen: seen}
	l, err := w.s.box.processes.Look(w.sh.proc)
	f.took = time.Since(f.at)
	if err != nil || l.Gone {
		return f
	}
	f.stopped, f.idle = l.Stopped, l.Reads != "" && l.Reads == w.sh.pipe
	if len(l.Waits) > 0 {
		for _, wait := range l.Waits {
			if c := certaintyOf(&wait, l.Runs); c > f.certainty {
				f.certainty, f.wait = c, wait
			}
		}
		f.reader = reader{pid: f.wait.PID, kind: kindOf(f.wait.Modes)}
		f.execed = f.wait.PID == w.sh.pid && w.sh.image != "" && l.Image != w.sh.image &&
			dialect.Interactive(l.Args)
		if f.certainty == mayWork {
			f.wait.Turns = 0
		}
	} else if l.Hidden && !f.idle && !l.Runs {
		w.guess(&f, &l)
	}
	return f
}

// certaintyOf returns the certainty of a wait. runs is the Look's Runs. What runs at a look is
// often about to end or to wait (the seq of seq 100 | less), on a busy machine for several looks.
// So the command gets the time of one whose reader may go on.
func certaintyOf(w *proc.Wait, runs bool) certainty {
	switch {
	case !w.Alone, w.OthersRun && runs:
		return mayWork
	case w.OthersRun:
		return othersWork
	}
	return certain
}

// guess says what processes may wait for that do not show it.
func (w *watch) guess(f *finding, l *proc.Look) {
	w.s.mu.Lock()
	partial, full := w.c.out.Partial(), w.c.out.FullScreen()
	w.s.mu.Unlock()
	kind := kindOf(l.HiddenModes)
	switch {
	case !l.Modes.Known:
	case kind == sandbox.Secret:
		f.certainty = certain
	case partial || full || kind == sandbox.Keys:
		f.certainty = mayWork
	}
	if f.found() {
		f.wait, f.reader = proc.Wait{Turns: l.Total}, reader{kind: kind, turns: l.Total}
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
