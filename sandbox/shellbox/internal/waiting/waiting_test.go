package waiting

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
)

// TestFinding: what one look says.
func TestFinding(t *testing.T) {
	shell := Shell{PID: 1, Pipe: "pipe:[1]", Image: "bash"}
	raw, noEcho := proc.Modes{Known: true, Raw: true}, proc.Modes{Known: true, NoEcho: true}
	cooked := proc.Modes{Known: true}
	for name, c := range map[string]struct {
		look    proc.Look
		partial bool
		want    Finding
	}{
		"nothing":      {},
		"gone":         {look: proc.Look{Gone: true, Waits: []proc.Wait{{PID: 2, Alone: true}}}},
		"idle":         {look: proc.Look{Reads: "pipe:[1]"}, want: Finding{Idle: true}},
		"another pipe": {look: proc.Look{Reads: "pipe:[2]"}},
		"alone": {look: proc.Look{Waits: []proc.Wait{{PID: 2, Alone: true, Modes: noEcho}}},
			want: Finding{Certainty: Certain, Wait: proc.Wait{PID: 2, Alone: true, Modes: noEcho},
				Reader: Reader{PID: 2, Kind: sandbox.Secret}}},
		"the surest of two": {look: proc.Look{Waits: []proc.Wait{{PID: 2, Turns: 9},
			{PID: 3, Alone: true, OthersRun: true, Turns: 5, Modes: raw}}},
			want: Finding{Certainty: OthersWork,
				Wait:   proc.Wait{PID: 3, Alone: true, OthersRun: true, Turns: 5, Modes: raw},
				Reader: Reader{PID: 3, Kind: sandbox.Keys}}},
		"turns of one that may go on": {look: proc.Look{Waits: []proc.Wait{{PID: 2, Turns: 9}}},
			want: Finding{Certainty: MayWork, Wait: proc.Wait{PID: 2},
				Reader: Reader{PID: 2, Kind: sandbox.Line}}},
		"exec": {look: proc.Look{Image: "dash", Args: []string{"dash", "-i"},
			Waits: []proc.Wait{{PID: 1, Alone: true}}},
			want: Finding{Certainty: Certain, Execed: true, Wait: proc.Wait{PID: 1, Alone: true},
				Reader: Reader{PID: 1, Kind: sandbox.Line}}},
		"hidden, no echo": {
			look: proc.Look{Hidden: true, Modes: cooked, HiddenModes: noEcho, Total: 7},
			want: Finding{Certainty: Certain, Wait: proc.Wait{Turns: 7},
				Reader: Reader{Kind: sandbox.Secret, Turns: 7}}},
		"hidden, a question": {partial: true,
			look: proc.Look{Hidden: true, Modes: cooked, HiddenModes: cooked, Total: 7},
			want: Finding{Certainty: MayWork, Wait: proc.Wait{Turns: 7},
				Reader: Reader{Kind: sandbox.Line, Turns: 7}}},
		"hidden, no question": {
			look: proc.Look{Hidden: true, Modes: cooked, HiddenModes: cooked}},
		"hidden, at work": {partial: true,
			look: proc.Look{Hidden: true, Runs: true, Modes: cooked, HiddenModes: cooked}},
	} {
		t.Run(name, func(t *testing.T) {
			var f Finding
			f.Judge(&c.look, shell, func() (partial, full bool) { return c.partial, false })
			require.Equal(t, c.want, f)
		})
	}
}

// looks makes looks, of which each takes took, and returns how many more must agree after the last.
func looks(l *Looks, active time.Time, took time.Duration, found ...Finding) (missing int) {
	for _, f := range found {
		time.Sleep(PaceMin)
		f.At, f.Took, f.Seen = time.Now(), took, active
		missing, _ = l.Add(&f, active, false)
	}
	return missing
}

// TestAgree: three looks must agree, and on a busy machine four. What is in between begins anew.
func TestAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active := time.Now()
		reads := Finding{Certainty: Certain, Wait: proc.Wait{PID: 2, Turns: 1},
			Reader: Reader{PID: 2, Kind: sandbox.Line}}
		ran, busy := reads, reads
		ran.Wait.Turns++
		busy.Busy = true

		require.Equal(t, 1, looks(&Looks{}, active, 0, reads, reads))
		require.Equal(t, 0, looks(&Looks{}, active, 0, reads, reads, reads))
		require.Equal(t, 1, looks(&Looks{}, active, 0, reads, reads, ran, ran), "it has run")
		require.Equal(t, 1, looks(&Looks{}, active, slowMin+1, reads, reads, reads))
		require.Equal(t, 0, looks(&Looks{}, active, slowMin+1, reads, reads, reads, reads))
		bySh := &Looks{ControlShell: true}
		require.Equal(t, 0, looks(bySh, active, slowMin+1, reads, reads, reads))
		require.Equal(t, 2, looks(&Looks{}, active, 0, reads, busy, busy), "output is on its way")

		var l Looks
		require.Equal(t, 0, looks(&l, active, 0, reads, reads, reads))
		require.Equal(t, 2, looks(&l, active.Add(1), 0, reads), "there was output")
		l.Again()
		require.Equal(t, 1, looks(&l, active.Add(1), 0, reads, reads))
		require.False(t, l.Agree(Surely))
		require.True(t, l.Agree(PaceMin))
		missing, _ := l.Add(&Finding{At: time.Now(), Seen: active.Add(1)}, active.Add(1), true)
		require.Equal(t, 2, missing, "input is on its way")
	})
}

// TestQuestion: a look at which the reader works does not undo what is known. Several in a row do.
func TestQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active := time.Now()
		reads := Finding{Certainty: MayWork, Wait: proc.Wait{PID: 2},
			Reader: Reader{PID: 2, Kind: sandbox.Line}}
		works := Finding{}
		var l Looks
		missing := looks(&l, active, 0, reads)
		require.Equal(t, Question{}, l.Question(&reads, missing, Question{}))
		missing = looks(&l, active, 0, works, reads, works, reads)
		require.Positive(t, missing)
		q := l.Question(&reads, missing, Question{})
		require.Equal(t, MayWork, q.Certainty)
		require.Equal(t, reads.Reader, q.Reader)

		sure := reads
		sure.Certainty = Certain
		missing = looks(&l, active, 0, sure, sure, sure)
		require.Zero(t, missing)
		q = l.Question(&sure, missing, q)
		require.Equal(t, Certain, q.Certainty)
		missing = looks(&l, active, 0, works, reads)
		require.Equal(t, q, l.Question(&reads, missing, q), "the same reader")

		require.True(t, l.Reading())
		looks(&l, active, 0, works, works, works)
		require.False(t, l.Reading())
		looks(&l, active, 0, reads)
		require.True(t, l.Reading())
		l.Forget()
		require.False(t, l.Reading())
	})
}

// TestPace: a command that has been quiet for long is seldom looked at.
func TestPace(t *testing.T) {
	for quiet, want := range map[time.Duration]time.Duration{
		0:                     PaceMin,
		40 * time.Millisecond: 10 * time.Millisecond,
		20 * time.Second:      PaceMax,
		40 * time.Second:      40 * time.Millisecond,
		time.Hour:             time.Second,
	} {
		require.Equal(t, want, Pace(quiet), quiet)
	}
}
