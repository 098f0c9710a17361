package sandbox

import (
	"cmp"
	"io"
	"regexp"
	"time"
)

// An ExecOption is an option of Execute, Input, Wait and Interrupt, and of a job's Until. It
// applies to that call only.
type ExecOption func(*ExecOptions)

// ExecOptions are the options of one call. Implementations of Session need them.
type ExecOptions struct {
	Timeout   time.Duration  // 0: none
	Yield     time.Duration  // 0: none
	Until     *regexp.Regexp // nil: none
	Tee       io.Writer      // nil: none
	Follow    []io.Writer    // each gets all output
	MaxOutput int            // in bytes
	Idle      time.Duration  // 0: none
	Question  Policy
	Patience  time.Duration // 0: the default; negative: without end
	Leave     bool
}

// DefaultMaxOutput is how many bytes of Output a Result keeps if MaxOutput sets no bound: 1 MiB.
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

// Timeout bounds the call. After d the command is killed, and the call returns ErrTimeout and a
// Result with what the command printed and its real exit status (130 if the interrupt key was
// enough). If d is 0, there is no limit. If d is negative, the command is killed at once, as if the
// deadline of ctx had passed. Session.Interrupt says which processes end.
func Timeout(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Timeout = d }
}

// Yield makes the call return after d, with State Running, if the command still runs. The command
// goes on. If d is 0, there is no limit. If d is negative, the call returns at once.
func Yield(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Yield = d }
}

// Until makes the call return, with State Running and Matched set, as soon as the output matches
// re. The Result's Output ends with the match; what came after the match belongs to the next
// Result. Until searches the output of this call, cleaned as in Result.Output. A line matches as
// soon as it is on the screen, even if it is rewritten later. A match can be at most 4 KiB long. If
// re is nil, Until does nothing.
func Until(re *regexp.Regexp) ExecOption {
	return func(o *ExecOptions) { o.Until = re }
}

// Tee copies the raw output, with its control sequences, to w as it comes. What came between two
// calls about a command is in the second one's Result, and not in w: use [Follow] or [LogTo] for
// all of it. Writes are made one at a time, from a goroutine of their own, and end before the call
// returns. A slow w slows the command down. If a Write fails, the copying ends, and nothing else
// does. If a Write panics, the copying ends, and the call returns an error that tells of the panic.
//
// If w blocks, the call does not return until the end of ctx, Timeout, Yield, Idle, Interrupt or
// Close asks it to. These give w a second. Then w gets nothing more, and the call returns the
// Result and an error that is exec.ErrWaitDelay and says how much w has not been given. A Write
// under way stays behind until w returns.
func Tee(w io.Writer) ExecOption {
	return func(o *ExecOptions) { o.Tee = w }
}

// Follow copies the raw output of the command that Execute starts to w, until the command has
// ended, and also while no call waits for the command. It is an option of Execute; other calls
// ignore it. Several Follows, each with its own w, do not disturb each other. If w is nil, Follow
// does nothing.
//
// w is used under the conditions of Tee, in all calls about the command. Each call returns when w
// has got the output that the call's Result covers. After w has panicked or has been given up, each
// call returns that error. The command ends when w has got all of its output. Until then, Execute
// of another command returns ErrBusy.
func Follow(w io.Writer) ExecOption {
	return func(o *ExecOptions) {
		if w != nil {
			o.Follow = append(o.Follow, w)
		}
	}
}

// Idle makes the call return, with State Running, once the command has printed nothing for d. The
// command goes on. If d is 0, there is no limit. If d is negative, the call returns at once.
func Idle(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Idle = d }
}

// A Policy says what a call does when the command waits for input.
type Policy int

const (
	// Return makes the call return with State Waiting. It is the default.
	Return Policy = iota
	// EndInput types the end of input (^D), once. If the command waits again, the call returns. To
	// a command that may go on and reads keys, nothing is typed: the call returns.
	EndInput
	// Fail kills the command. The call returns its Result and ErrQuestion.
	Fail
	// KeepWaiting makes the call go on waiting. It is for commands that are answered by Input from
	// another goroutine: by a person at a terminal, for example, who sees what Tee shows.
	KeepWaiting
)

// Patience sets for how long a command must have printed nothing before a call returns with
// [Result.MayGoOn]. Such a command reads the terminal, but may go on by itself. The default is 1 s
// where the terminal shows a question (an unfinished line, input that is not echoed, raw mode, a
// full screen), and else 5 s. If the program that reads does nothing else, and only other programs
// of the command may go on, which sleep at the time, the default is 0. If d is negative, the call
// returns only when the command is sure to wait.
//
// AtQuestion's EndInput and Fail act on a command that may go on only if Patience is given and
// positive. Without it, a call with them returns when the command is sure to wait, or has ended.
func Patience(d time.Duration) ExecOption {
	return func(o *ExecOptions) { o.Patience = d }
}

// AtQuestion says what the call does when the command waits for input. The default is Return.
func AtQuestion(p Policy) ExecOption {
	return func(o *ExecOptions) { o.Question = p }
}

// MaxOutput sets how many bytes of Output are kept, half of them from the head and half from the
// tail. If n is 0 or negative, it is DefaultMaxOutput.
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

// SessionOptions are the options of one session or job. Implementations of Sandbox need them.
type SessionOptions struct {
	Dir        string      // "": the sandbox's, where a relative one starts
	Env        []string    // "NAME=value"
	User       string      // "": the sandbox's
	Rows, Cols int         // of the terminal; 0 with Like: those of its terminal
	MaxLog     int64       // in bytes
	LogTo      []io.Writer // each gets all output
	Pipes      bool        // refuse it in Open
	Like       Session     // nil: none; refuse it where it cannot be done
	Accept     LossKind    // what Like may lose
}

// DefaultRows and DefaultCols are the size of a terminal for which Size sets none. It is the size
// of a VT100.
const (
	DefaultRows = 24
	DefaultCols = 80
)

// NewSessionOptions applies opts to the defaults.
func NewSessionOptions(opts ...SessionOption) SessionOptions {
	o := SessionOptions{MaxLog: DefaultMaxLog}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.Like == nil {
		o.Rows, o.Cols = cmp.Or(o.Rows, DefaultRows), cmp.Or(o.Cols, DefaultCols)
	}
	return o
}

// Dir sets the directory in which the session starts. The default is the sandbox's directory, where
// a relative path starts too, as with Cmd.Dir. "~" and "~/x" are fs.ErrInvalid.
func Dir(path string) SessionOption {
	return func(o *SessionOptions) { o.Dir = path }
}

// Env adds variables, each "NAME=value", to the sandbox's. If a name comes twice, the later one
// wins.
func Env(kv ...string) SessionOption {
	return func(o *SessionOptions) { o.Env = append(o.Env, kv...) }
}

// Size sets the size of the session's terminal. If rows or cols is 0, it is DefaultRows or
// DefaultCols. Open and Background refuse negative numbers, and numbers above 10,000.
func Size(rows, cols int) SessionOption {
	return func(o *SessionOptions) {
		o.Rows, o.Cols = cmp.Or(rows, DefaultRows), cmp.Or(cols, DefaultCols)
	}
}

// DefaultMaxLog is how many bytes of a job's output are kept if MaxLog sets no bound: 64 MiB.
const DefaultMaxLog = 64 << 20

// MaxLog bounds the log of a job to its last n bytes, here and in a box that keeps the log for
// another program. Offsets stay those of the whole output; Logs skips what is no longer kept. If n
// is 0 or negative, the bound is DefaultMaxLog.
func MaxLog(n int64) SessionOption {
	return func(o *SessionOptions) {
		o.MaxLog = n
		if n <= 0 {
			o.MaxLog = DefaultMaxLog
		}
	}
}

// LogTo copies what a job prints to w as it comes, beside its log, under the conditions of Tee. The
// job ends, and its Done is closed, when w has got everything. If w blocks, the job does not end
// until Kill or Close, which give w a second; Wait then returns the Result and an error that is
// exec.ErrWaitDelay. Several LogTos, each with its own w, do not disturb each other. Open ignores
// LogTo. If w is nil, LogTo does nothing.
func LogTo(w io.Writer) SessionOption {
	return func(o *SessionOptions) {
		if w != nil {
			o.LogTo = append(o.LogTo, w)
		}
	}
}

// Pipes starts a job on three pipes in place of a terminal. So its standard output and its standard
// error are apart, and its input is what Job.Input writes and ends with Job.EndInput. Logs has the
// standard output, and so have Until, Wait and Tee; Stderr has the standard error, with a log of
// its own of the same bound. LogTo gets both as they come.
//
// The sandbox's shell runs the command, without a terminal and not interactive; Linux allows it 128
// KiB. Size has no meaning. State is never Waiting, and Cwd is empty. Timeout kills as Job.Kill
// does. The job ends when its shell has ended and both outputs have. If a process that the command
// has left in the background holds one open, the job ends when nothing has come for two seconds,
// and what that process prints later is lost: redirect its output.
//
// Open refuses Pipes. With Like, the error is errors.ErrUnsupported.
func Pipes() SessionOption {
	return func(o *SessionOptions) { o.Pipes = true }
}

// User runs the session's shell, or the job, as another user, also after the shell has been
// restarted. Cmd.User does so for a program. name is a user's name or a number: "1000", or
// "1000:100" with the group's number, as in docker run --user. The default is the sandbox's user.
//
// The shell or job has that user's id, group and supplementary groups, and its terminal belongs to
// the user. Unless Env says otherwise, HOME, USER, LOGNAME and SHELL are the user's. The session's
// shell is the sandbox's, whatever the user's is. If only the number of the user is known, HOME is
// "/", and the group is 0 unless name gives one. A group that name gives is the only one.
//
// The directory is Dir's. If the user may not enter Dir, the error is fs.ErrPermission. Without Dir
// it is the sandbox's directory; if the user may not enter that, it is the user's home, or "/" if
// there is none that the user may enter.
//
// The sandbox's own user always works, and changes nothing. For others the sandbox must run as
// root, else the error is fs.ErrPermission. If the user does not exist, the error is
// user.UnknownUserError (package os/user). An SSHBox can become no other user; the error is
// errors.ErrUnsupported. Log in as that user instead.
func User(name string) SessionOption {
	return func(o *SessionOptions) { o.User = name }
}
