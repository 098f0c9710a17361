package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// The errors that callers tell apart with errors.Is. A method's error wraps one of them and says
// what the method was doing. Other errors are errors.ErrUnsupported for what a sandbox cannot do,
// *fs.PathError from files and copies, and ctx's error.
var (
	// ErrClosed: the session or sandbox has been closed. It is os.ErrClosed too.
	ErrClosed error = &sentinel{"the session or sandbox has been closed", os.ErrClosed}
	// ErrBusy: a command of this session is unfinished. Use Input, Wait or Interrupt, or open
	// another session.
	ErrBusy error = &sentinel{"a command is unfinished: Wait, Input or Interrupt it, or Open a " +
		"second session", nil}
	// ErrIdle: no command of this session is unfinished. Use Execute.
	ErrIdle error = &sentinel{"no command is unfinished: Execute one first", nil}
	// ErrTimeout: Timeout has passed, and the command has been killed. It is
	// context.DeadlineExceeded too.
	ErrTimeout error = &sentinel{"command timed out", context.DeadlineExceeded}
	// ErrQuestion: the command waited for input, and was killed because of AtQuestion(Fail).
	ErrQuestion error = &sentinel{"the command waits for input, and nobody answers", nil}
	// ErrCut: the connection to the sandbox was cut during a copy, or under a connection that was
	// dialed or accepted. None of these can be resumed. The sandbox is still there and is being
	// connected to again, so try again. Sessions and jobs go on as if nothing had happened.
	ErrCut error = &sentinel{"the connection to the sandbox was cut: try again", nil}
	// ErrLost: the connection or the container is gone. errors.As with a *LostError says why.
	ErrLost error = &sentinel{"sandbox lost", nil}
)

type sentinel struct {
	text string
	is   error
}

func (e *sentinel) Error() string { return e.text }
func (e *sentinel) Unwrap() error { return e.is }

// A LostError says why a sandbox is lost. It is ErrLost.
type LostError struct {
	Box string // the sandbox's String
	// Reason is for people: "connection closed by the server", "the container was removed", "out of
	// memory", and so on.
	Reason string
	Cause  LostCause // for programs
	Err    error     // the underlying error, if there is one
}

// A LostCause says what has ended a sandbox. A harness counts some causes as the task's failure
// (LostMemory, LostEnded), and others as the infrastructure's.
type LostCause string

const (
	// LostUnknown: the cause is not known.
	LostUnknown LostCause = ""
	// LostMemory: the kernel killed it because its memory, or the machine's, was used up.
	LostMemory LostCause = "out of memory"
	// LostEnded: a program in it has ended it, as by kill -TERM 1, or has taken away what its
	// shells need.
	LostEnded LostCause = "ended"
	// LostRemoved: it was stopped, killed, restarted or removed from outside.
	LostRemoved LostCause = "removed"
	// LostEvicted: the cluster took its pod off its node, which was drained, or short of memory or
	// disk, or needed for another pod.
	LostEvicted LostCause = "evicted"
	// LostNode: the machine that it was on is gone, or silent for too long.
	LostNode LostCause = "node gone"
	// LostTaken: another program has attached to it and works with it.
	LostTaken LostCause = "taken"
	// LostConnection: the machine or the engine does not answer, or has ended the connection. The
	// sandbox may go on.
	LostConnection LostCause = "connection"
)

// Error implements error.
func (e *LostError) Error() string {
	s := e.Box + " lost: " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is reports whether target is ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns the underlying error.
func (e *LostError) Unwrap() error { return e.Err }

// A CopyError says what a copy has left out because it could not be read or was removed meanwhile.
// The copy was made, with all else, so a CopyError does not wrap the errors that it holds. If there
// was nothing else to copy, the copy fails with the error itself.
type CopyError struct {
	Skipped []*fs.PathError // the first files left out, at most 100, with the reasons
	Count   int             // how many files were left out
}

// Error implements error.
func (e *CopyError) Error() string {
	if len(e.Skipped) == 0 {
		return fmt.Sprintf("copied, except for %d files", e.Count)
	}
	text := "copied, except for " + strings.TrimPrefix(e.Skipped[0].Error(), "copy ")
	if e.Count > 1 {
		text += fmt.Sprintf(", and %d more", e.Count-1)
	}
	return text
}

// A CopyError keeps at most mostSkipped errors. Their paths and texts together have at most
// mostSkippedText bytes.
const mostSkipped, mostSkippedText = 100, 16 << 10

// Add adds a file that was left out. Implementations of copies need it.
func (e *CopyError) Add(err *fs.PathError) {
	e.Count++
	if e.Count > mostSkipped || e.Count > len(e.Skipped)+1 {
		return
	}
	size := 0
	for _, skipped := range append(e.Skipped, err) {
		size += len(skipped.Path) + len(skipped.Err.Error())
	}
	if size <= mostSkippedText || e.Count == 1 {
		e.Skipped = append(e.Skipped, err)
	}
}
