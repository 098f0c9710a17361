package pytool

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/lastlines"
)

// An Exception is a Python exception, raised by the function or on the way to its call.
type Exception struct {
	Function string
	Stage    Stage
	Type     string // "ValueError"
	Module   string // of the type: "builtins", "tool" for the source's own, …
	Message  string // str() of the exception, up to 64 KiB
	// as Python prints it, from the source's own frames on, up to 256 KiB; empty for Find, Bind and
	// Return
	Traceback string
}

// A Stage says how far a call got. Code of the source has run only in Load, Body and Return.
type Stage string

const (
	Compile Stage = "compile" // the source is not Python: SyntaxError, …
	Load    Stage = "load"    // the module raised when it was run
	Find    Stage = "find"    // there is no such function in it: NameError, TypeError
	Bind    Stage = "bind"    // the function does not take these arguments: TypeError
	Body    Stage = "body"    // the function raised
	// the return value or the state is not JSON: TypeError; or they are longer than 9 MiB:
	// OverflowError
	Return Stage = "return"
)

// Error implements error: one line and the exception's message.
func (e *Exception) Error() string {
	what := e.Type
	if e.Message != "" {
		what += ": " + e.Message
	}
	switch e.Stage {
	case Compile:
		return "the source of " + e.Function + " does not compile: " + what
	case Load:
		return "the source of " + e.Function + " raised " + what
	case Find:
		return "call " + e.Function + ": " + e.Message
	case Bind:
		return e.Function + " does not take the arguments: " + e.Message
	case Return:
		return "the result of " + e.Function + " cannot be returned: " + e.Message
	}
	return e.Function + " raised " + what
}

// An ExitError says that the function's process ended before it had a result.
type ExitError struct {
	Function string
	Code     int            // the exit status, 128+n when signal n ended it
	Signal   syscall.Signal // 0 if it ended by itself
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Signal != 0 {
		why := e.Signal.String()
		if e.Signal == syscall.SIGKILL {
			why += "; out of memory?"
		}
		return fmt.Sprintf("the process of %s was ended by signal %d (%s), without result",
			e.Function, int(e.Signal), why)
	}
	return fmt.Sprintf("the process of %s ended with exit status %d, without result", e.Function,
		e.Code)
}

// A RequirementsError says that requirements could not be installed. Nothing is left of the
// attempt; the next call tries again.
type RequirementsError struct {
	Requirements []string
	ExitCode     int
	Output       string // of the installation: head and tail, up to 1 MiB
	Omitted      int64  // bytes cut out of the middle of Output
}

// Error implements error, with the last lines of Output.
func (e *RequirementsError) Error() string {
	return fmt.Sprintf("install the requirements %s: exit status %d: %s",
		strings.Join(e.Requirements, ", "), e.ExitCode, cmp.Or(lastlines.Of(e.Output), "no output"))
}
