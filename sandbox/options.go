package sandbox

import (
	"io"
	"regexp"
	"time"
)

// An ExecOption is an option of Execute, Input, Wait and Interrupt. It holds for that call.
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

// Timeout bounds the call: d after its begin the command is killed, and the call returns a Result with what it
// printed and its real exit status (130 if the interrupt key was enough), and ErrTimeout. Zero or less: no limit.
func Timeout(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Timeout = max(d, 0) }
}

// Yield makes the call return d after its begin with State Running if the command is still going, which it then
// goes on doing. Zero or less: no limit.
func Yield(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Yield = max(d, 0) }
}

// Until makes the call return, with State Running and Matched set, as soon as the output matches re. The
// Result's Output ends with the match; what came after it belongs to the next Result. The output of this call is
// searched, cleaned as in Result.Output; a match can be at most 4 KiB long.
func Until(re *regexp.Regexp) ExecOption {
	return func(o *ExecOptions) { o.Until = re }
}

// Tee copies the raw output, controls and all, to w as it comes. Writes are made one at a time and end before
// the call returns; a slow w slows the command down. An error of w is ignored, and ends the copying.
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
