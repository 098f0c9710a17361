package sandbox

import (
	"io"
	"regexp"
	"time"
)

// An ExecOption is an option of Execute, Input, Wait and Interrupt. It applies to that call only.
type ExecOption func(*ExecOptions)

// ExecOptions are the options of one call, for those who implement Session.
type ExecOptions struct {
	Timeout   time.Duration  // 0: none
	Yield     time.Duration  // 0: none
	Until     *regexp.Regexp // nil: none
	Tee       io.Writer      // nil: none
	MaxOutput int            // bytes
	Attended  bool
}

// DefaultMaxOutput is how many bytes of Output a Result keeps unless MaxOutput says otherwise: 1 MiB.
const DefaultMaxOutput = 1 << 20

// NewExecOptions applies opts to the defaults.
func NewExecOptions(opts ...ExecOption) ExecOptions {
	o := ExecOptions{MaxOutput: DefaultMaxOutput}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Timeout bounds the call: after d the command is killed, and the call returns ErrTimeout and a Result with what the
// command printed and its real exit status (130 if the interrupt key was enough). Zero or less: no limit.
func Timeout(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Timeout = max(d, 0) }
}

// Yield makes the call return after d, with State Running, if the command still runs; the command goes on. Zero or less:
// no limit.
func Yield(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Yield = max(d, 0) }
}

// Until makes the call return, with State Running and Matched set, as soon as the output matches re. The
// Result's Output ends with the match; what came after the match belongs to the next Result. Until searches the output of
// this call, cleaned as in Result.Output. A match can be at most 4 KiB long.
func Until(re *regexp.Regexp) ExecOption {
	return func(o *ExecOptions) { o.Until = re }
}

// Tee copies the raw output, with its control sequences, to w as it comes. Writes are made one at a time and end before
// the call returns; a slow w slows the command down. An error of w ends the copying and is otherwise ignored.
func Tee(w io.Writer) ExecOption {
	return func(o *ExecOptions) { o.Tee = w }
}

// Attended says that somebody else answers the command, such as a person at a terminal who sees what Tee shows: the call does not
// return when the command waits for input. The answers come by Input, from another goroutine.
func Attended() ExecOption {
	return func(o *ExecOptions) { o.Attended = true }
}

// MaxOutput sets how many bytes of Output are kept, half of them from the head and half from the tail.
// The default, for zero or less too, is DefaultMaxOutput.
func MaxOutput(n int) ExecOption {
	return func(o *ExecOptions) {
		o.MaxOutput = n
		if n <= 0 {
			o.MaxOutput = DefaultMaxOutput
		}
	}
}

// A SessionOption is an option of Open and Background.
type SessionOption func(*SessionOptions)

// SessionOptions are the options of one session, for those who implement Sandbox.
type SessionOptions struct {
	Dir        string   // "": the sandbox's
	Env        []string // "NAME=value"
	Rows, Cols int
}

// DefaultRows and DefaultCols are the size of a terminal unless Size says otherwise: a VT100's.
const (
	DefaultRows = 24
	DefaultCols = 80
)

// NewSessionOptions applies opts to the defaults.
func NewSessionOptions(opts ...SessionOption) SessionOptions {
	o := SessionOptions{Rows: DefaultRows, Cols: DefaultCols}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Dir sets the directory in which the session starts. Default: the sandbox's.
func Dir(path string) SessionOption {
	return func(o *SessionOptions) { o.Dir = path }
}

// Env adds variables, each "NAME=value", to the sandbox's; a later one of the same name wins.
func Env(kv ...string) SessionOption {
	return func(o *SessionOptions) { o.Env = append(o.Env, kv...) }
}

// Size sets the size of the session's terminal. Default: 24 × 80.
func Size(rows, cols int) SessionOption {
	return func(o *SessionOptions) { o.Rows, o.Cols = rows, cols }
}
