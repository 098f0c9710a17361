// Package waiting judges from looks at a command's processes whether the command waits for input.
// It does not look itself, and knows nothing of sessions and locks.
//
// The host says which threads wait for the terminal (Look of hostapi.Processes). Three looks some
// milliseconds apart must agree. Between them there must be no output, and the thread must not run.
// After each look the session waits until the program has got the input written so far, and its
// output so far has been read (Settle). So the output before the read has arrived when Waiting is
// reported, and a program that is working through its input is not taken for one that waits.
//
// A command that reads the terminal may also go on by itself, or it is only guessed to read. Then
// the session keeps looking, and the step from there to a command that waits for certain comes
// without output. It looks at that command's threads while they work, so single looks differ: it
// has lost the reader only after several looks in a row without it.
package waiting

import (
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A Certainty says how sure it is that a command waits for input.
type Certainty int

const (
	// Unasked: nothing reads the terminal, or that is not known.
	Unasked Certainty = iota
	// MayWork: the program that reads may go on without input, or one that waits for it may, or
	// another program of the command runs at this moment, or it is a guess.
	MayWork
	// OthersWork: the program that reads does nothing else, and other programs of the command may
	// go on, but sleep.
	OthersWork
	// Certain: nothing of the command goes on without input.
	Certain
)

// A Reader is who reads the terminal, and what it wants. Two looks that find the same reader have
// found the same question, if there was no output or input between them.
type Reader struct {
	PID   int // 0: a guess
	Kind  sandbox.InputKind
	Turns int64 // of a guess: those of all processes of the terminal
}

// A Question is what the looks have found a command to wait for.
type Question struct {
	Certainty Certainty
	Reader    Reader
	Since     time.Time // when the reader was first found
}

// The times for which a command must have been quiet that reads the terminal and may go on.
const (
	ShownPatience = time.Second     // if the terminal shows a question
	Patience      = 5 * time.Second // if not
)

// The pace of the looks depends on how long the terminal has been quiet: a fast command is never
// looked at, a long one seldom.
const (
	PaceMin   = 4 * time.Millisecond  // between looks
	PaceMax   = 20 * time.Millisecond // in the first half minute
	paceLong  = time.Second           // at most
	paceAfter = 30 * time.Second
	// The machine is busy if a timer fires slowMin late, or if a look takes that long. A look by
	// control.sh takes 3 to 5 ms on any machine.
	slowMin   = 3 * time.Millisecond
	slowAsked = 9 * time.Millisecond
	// Surely: what has not changed for so long is not going to.
	Surely = time.Second
	// LooksToAgree is how many looks in a row must agree.
	LooksToAgree = 3
)

// Pace returns how long to wait between looks at a terminal that has been quiet for so long.
func Pace(quiet time.Duration) time.Duration {
	if quiet < paceAfter {
		return min(max(quiet/4, PaceMin), PaceMax)
	}
	return min(quiet/1000, paceLong)
}
