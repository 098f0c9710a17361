package pytool

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/lastlines"
)

// An Exception is a Python exception that a call has raised.
type Exception struct {
	Function string
	Stage    Stage
	Type     string // such as "ValueError"
	Module   string // the module of Type: "builtins", "tool" for a class of the source, …
	Message  string // str() of the exception, up to 64 KiB
	// Traceback is what Python prints, from the first frame of the source on, up to 256 KiB. It is
	// empty for Find, Bind and Return.
	Traceback string
}

// A Stage says how far a call has come. The source's code has run in Load, Find, Bind, Body and
// Return, but the function only in Body and Return.
type Stage string

const (
	Compile Stage = "compile" // the source is not valid Python: SyntaxError, …
	Load    Stage = "load"    // the source raised when it was run as a module
	Find    Stage = "find"    // the source has no such function: NameError, TypeError
	Bind    Stage = "bind"    // the function does not take these arguments: TypeError
	Body    Stage = "body"    // the function raised
	// Return: the return value or the state is not JSON (TypeError), or they have more than 9 MiB
	// (OverflowError).
	Return Stage = "return"
)

// Error implements error. It is one line with the exception's message.
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
	Code     int            // the exit status; 128+n if signal n killed it
	Signal   syscall.Signal // the signal that killed it; 0 if none did
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Signal != 0 {
		why := e.Signal.String()
		if e.Signal == syscall.SIGKILL {
			why += "; out of memory?"
		}
		return fmt.Sprintf("the process of %s was killed by signal %d (%s) before it had a result",
			e.Function, int(e.Signal), why)
	}
	return fmt.Sprintf("the process of %s ended with exit status %d before it had a result",
		e.Function, e.Code)
}

// A RequirementsError says that requirements could not be installed. The attempt leaves nothing
// behind, and the next call tries again.
type RequirementsError struct {
	Requirements []string
	ExitCode     int
	Output       string // head and tail of the output of the installation, up to 1 MiB
	Omitted      int64  // bytes left out of the middle of Output
}

// Error implements error. It has the last lines of Output.
func (e *RequirementsError) Error() string {
	return fmt.Sprintf("install the requirements %s: exit status %d: %s",
		strings.Join(e.Requirements, ", "), e.ExitCode, cmp.Or(lastlines.Of(e.Output), "no output"))
}
