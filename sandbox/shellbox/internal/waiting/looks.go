package waiting

import "time"

// Looks are the looks at one command, one after the other.
type Looks struct {
	// ControlShell says that the control shell looks: that takes longer.
	ControlShell bool

	last    Finding
	agreed  int           // how many looks in a row have found the same
	since   time.Time     // when the first of them began
	reading reading       // who reads the terminal
	slow    time.Duration // the machine's delay: the worst of the last looks
}

// Late tells how late a timer has fired.
func (l *Looks) Late(by time.Duration) { l.slow = max(by, l.slow*3/4) }

// Slow returns how slow the machine is: the worst of how long the last looks took, and of how late
// timers fired.
func (l *Looks) Slow() time.Duration { return l.slow }

// Add compares a finding with the one before. It returns how many more must agree, and how long to
// wait before the next look. active is the command's last activity. If moving is set, input is on
// its way.
//
// The program's output passes through queues of the kernel and of this program. On a busy machine
// that takes longer: one more look must agree there, and the looks are farther apart. Output that
// has not arrived after a second never will: nothing reads it, or it has no end.
func (l *Looks) Add(f *Finding, active time.Time, moving bool) (missing int, apart time.Duration) {
	between := moving || !f.Seen.Equal(active) || !f.Seen.Equal(l.last.Seen)
	settled := !f.Busy || l.Agree(Surely)
	if between || !f.same(&l.last) {
		l.agreed, l.since = 0, f.At
	}
	if settled {
		l.agreed++
	}
	l.reading.add(f, between, settled)
	l.last = *f
	busy := slowMin
	if l.ControlShell {
		busy = slowAsked
	}
	if l.slow = max(l.slow, f.Took); l.slow > busy {
		return LooksToAgree + 1 - l.agreed, min(2*l.slow, PaceMax)
	}
	return LooksToAgree - l.agreed, PaceMin
}

// Agree reports whether looks have found the same for longer than d.
func (l *Looks) Agree(d time.Duration) bool { return time.Since(l.since) > d }

// Again makes the next looks agree with each other only.
func (l *Looks) Again() { l.agreed = 0 }

// Forget makes the next looks find the reader anew.
func (l *Looks) Forget() { l.reading = reading{} }

// Reading reports whether a look has found a reader, and no later ones have lost it.
func (l *Looks) Reading() bool { return l.reading.looks > 0 }

// Question returns what the looks up to f have found. missing is how many more must agree with f. q
// is what was known before. A look at a thread of the reader that works for a moment does not undo
// that.
func (l *Looks) Question(f *Finding, missing int, q Question) Question {
	r := &l.reading
	switch {
	case missing <= 0:
		return Question{f.Certainty, r.reader, r.since}
	case q.Certainty > MayWork && q.Reader == r.reader && q.Since.Equal(r.since):
		return q
	case r.looks < LooksToAgree,
		// nearly certain: looks are slow on a busy machine
		f.Certainty > MayWork && l.agreed > 1 && f.At.Sub(r.since) < Patience:
		return Question{}
	}
	return Question{MayWork, r.reader, r.since}
}

// A reading is what looks in a row have found of one reader.
type reading struct {
	reader Reader
	since  time.Time // the first look
	looks  int       // that have found the reader
	missed int       // how many looks in a row have not
}

// add adds a look. between says that there was input or output since the look before. settled says
// that none is on its way.
func (r *reading) add(f *Finding, between, settled bool) {
	if !between && !f.Found() {
		r.missed++
	}
	if between || r.missed == LooksToAgree || f.Found() && f.Reader != r.reader {
		*r = reading{}
	}
	if !f.Found() {
		return
	}
	if r.missed = 0; r.reader == (Reader{}) {
		r.reader, r.since = f.Reader, f.At
	}
	if settled {
		r.looks++
	}
}
