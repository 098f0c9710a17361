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
	Follow    []io.Writer    // each gets all
	MaxOutput int            // bytes
	Idle      time.Duration  // 0: none
	Question  Policy
	Attended  bool
}

// DefaultMaxOutput is how many bytes of Output a Result keeps unless MaxOutput says otherwise: 1
// MiB.
const DefaultMaxOutput = 1 << 20

// NewExecOptions applies opts to the defaults.
func NewExecOptions(opts ...ExecOption) ExecOptions {
	o := ExecOptions{MaxOutput: DefaultMaxOutput}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

// Timeout bounds the call: after d the command is killed, and the call returns ErrTimeout and a
// Result with what the command printed and its real exit status (130 if the interrupt key was
// enough). Zero: no limit. Less than zero: at once, as with a context whose deadline has passed.
func Timeout(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Timeout = d }
}

// Yield makes the call return after d, with State Running, if the command still runs; the command
// goes on. Zero: no limit. Less than zero: at once.
func Yield(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Yield = d }
}

// Until makes the call return, with State Running and Matched set, as soon as the output matches
// re. The Result's Output ends with the match; what came after the match belongs to the next
// Result. Until searches the output of this call, cleaned as in Result.Output. A match can be at
// most 4 KiB long.
func Until(re *regexp.Regexp) ExecOption {
	return func(o *ExecOptions) { o.Until = re }
}

// Tee copies the raw output, with its control sequences, to w as it comes. Writes are made one at
// a time, from a goroutine of their own, and end before the call returns. A slow w slows the
// command down. If a Write fails, the copying ends, and nothing else does. If a Write panics, the
// copying ends, and the call returns an error that tells it.
//
// A w that blocks keeps the call from returning until something else wants it to: the end of ctx,
// Timeout, Yield, Idle, Interrupt or Close. These give w a second. Then w gets nothing more, and
// the call returns an error that is exec.ErrWaitDelay and says how much w has not been given,
// beside the Result. A Write under way stays behind until w returns.
func Tee(w io.Writer) ExecOption {
	return func(o *ExecOptions) { o.Tee = w }
}

// Follow copies the raw output of the command that Execute starts to w, until the command has
// ended: also what it prints while no call waits for it. It is an option of Execute; other calls
// ignore it. Several Follows, each with its own w, do not disturb each other.
//
// The conditions are those of Tee, for all calls about the command: each returns when w has got the
// output that its Result tells of, and after a w that was given up, or has panicked, each returns
// that error. The command ends when w has got all of its output: until then Execute of another
// one returns ErrBusy.
func Follow(w io.Writer) ExecOption {
	return func(o *ExecOptions) {
		if w != nil {
			o.Follow = append(o.Follow, w)
		}
	}
}

// Attended says that somebody else answers the command, such as a person at a terminal who sees
// what Tee shows: the call does not return when the command waits for input. The answers come by
// Input, from another goroutine.
func Attended() ExecOption {
	return func(o *ExecOptions) { o.Attended = true }
}

// Idle makes the call return with State Running, if the command still runs, once nothing has been
// printed for d. Zero: no limit. Less than zero: at once.
func Idle(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Idle = d }
}

// A Policy says what becomes of a command that waits for input.
type Policy int

const (
	Return Policy = iota // the call returns, with State Waiting: the default
	// the end of input (^D) is typed, once; if the command waits again, the call returns
	EndInput
	Fail // the command is killed, and the call returns its Result and ErrQuestion
)

// AtQuestion says what the call does when the command waits for input, for callers who have nobody
// to answer it.
func AtQuestion(p Policy) ExecOption {
	return func(o *ExecOptions) { o.Question = p }
}

// MaxOutput sets how many bytes of Output are kept, half of them from the head and half from the
// tail. The default, for zero or less too, is DefaultMaxOutput.
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
	Dir        string   // "": the sandbox's, where a relative one starts
	Env        []string // "NAME=value"
	User       string   // "": the sandbox's
	Rows, Cols int
	MaxLog     int64       // bytes
	LogTo      []io.Writer // each gets all
}

// DefaultRows and DefaultCols are the size of a terminal unless Size says otherwise: a VT100's.
const (
	DefaultRows = 24
	DefaultCols = 80
)

// NewSessionOptions applies opts to the defaults.
func NewSessionOptions(opts ...SessionOption) SessionOptions {
	o := SessionOptions{Rows: DefaultRows, Cols: DefaultCols, MaxLog: DefaultMaxLog}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

// Dir sets the directory in which the session starts. Default: the sandbox's, where a relative path
// starts: as with Cmd.Dir. "~" and "~/x" are fs.ErrInvalid.
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

// DefaultMaxLog is how many bytes of a job's output are kept unless MaxLog says otherwise: 64 MiB.
const DefaultMaxLog = 64 << 20

// MaxLog bounds the log of a job to its last n bytes, here and in a box that keeps it for another
// program. Offsets stay those of the whole output; what is before the bytes that are kept is
// skipped when it is read. The default, for zero or less too, is DefaultMaxLog.
func MaxLog(n int64) SessionOption {
	return func(o *SessionOptions) {
		o.MaxLog = n
		if n <= 0 {
			o.MaxLog = DefaultMaxLog
		}
	}
}

// LogTo copies what a job prints to w as it comes, beside its log, under the conditions of Tee. The
// job ends, and its Done is closed, when w has got everything. A w that blocks keeps the job from
// ending until Kill or Close, which give it a second; Wait then returns an error that is
// exec.ErrWaitDelay, beside the Result. Several LogTos, each with its own w, do not disturb each
// other. Open ignores it.
func LogTo(w io.Writer) SessionOption {
	return func(o *SessionOptions) {
		if w != nil {
			o.LogTo = append(o.LogTo, w)
		}
	}
}

// User runs the session's shell, or the job, as another user, also after the shell's end; Cmd.User
// does so for a program. name is a user's name, or a number: "1000", or "1000:100" with the
// group's, as docker run --user has it. Default: the sandbox's user.
//
// What is started has that user's id, group and supplementary groups and, unless Env says
// otherwise, its HOME, USER, LOGNAME and SHELL; the terminal is its own. The session's shell
// remains the sandbox's. A user whom only the number is known of has HOME=/ and, unless a group is
// given, group 0; a given group is the only one. The directory is not the user's home but Dir's,
// where one that the user may not enter is fs.ErrPermission. Without Dir it is the sandbox's, or
// "/" if the user may not enter that.
//
// The sandbox's own user changes nothing and always works. For all others the sandbox has to run as
// root, else the error is fs.ErrPermission; a user that does not exist is user.UnknownUserError
// (package os/user). An SSHBox cannot do it: errors.ErrUnsupported. Log in as that user instead.
func User(name string) SessionOption {
	return func(o *SessionOptions) { o.User = name }
}
