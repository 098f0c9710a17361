package session

import (
	"math"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// A Session is a shell on a terminal. When the shell ends, another one takes its place. It
// implements sandbox.Session.
type Session struct {
	box  *Box
	id   string
	opts sandbox.SessionOptions
	job  *Job // the job that the session is for; nil: it is for callers
	// taking holds a token while a call takes the turn of the session: see turn.go.
	taking chan struct{}

	readers sync.WaitGroup // all goroutines of the session
	ended   chan struct{}  // closed when err is set

	mu         sync.Mutex
	err        error          // why the session has ended: ErrClosed or ErrLost
	sh         *shell         // nil before the first start, and while away
	isNew      bool           // no session of the host has had the id
	away       bool           // another program may have the turn
	missing    bool           // while away: the host had no shell of it when asked last
	users      int            // calls that need the turn
	listed     hostapi.Listed // the shell's process, while away
	shown      int64          // while away: the screen has the output up to here; -1: unknown
	seq        int            // the number of the last line
	lastAnswer int            // the number of the last End marker
	given      int            // the number of the last command whose result a call has returned
	noting     bool           // given is about to be stored
	status     int            // $?
	cwd        string
	restarted  bool // the shell ended between two commands: the next Result says so
	rows, cols int
	screen     *terminal.Tail
	inputEnded bool     // of a job on pipes: EndInput has been called
	alternate  bool     // the last command has left the alternate screen on
	cmd        *command // the unfinished command, or nil
	renewal    string   // a line that goes before the next command's; see Renew
	tending    *time.Timer
	tends      bool // tending is set
	// when the last command ended; before the first command, a time before the first shell
	lastEnd time.Time
	// the last command, if it ended while no call waited for it: Wait returns its Result
	unreported *command
}

// screenTail is how much raw output Screen is rendered from.
const screenTail = 256 << 10

// New returns a session for the job j, or for callers if j is nil. It has no shell before Start.
func New(box *Box, id string, opts sandbox.SessionOptions, j *Job) *Session {
	s := &Session{
		box: box, id: id, opts: opts, rows: opts.Rows, cols: opts.Cols,
		screen: terminal.NewTail(screenTail),
		ended:  make(chan struct{}), taking: make(chan struct{}, 1),
		job: j, isNew: true,
	}
	if j != nil {
		j.session = s
	}
	return s
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Job returns the job that the session is for, or nil.
func (s *Session) Job() *Job { return s.job }

// Options returns the options of the session's next shell. Dir is where Start has started it.
func (s *Session) Options() sandbox.SessionOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts
}

// Cwd returns the directory of the shell when it was last at its prompt.
func (s *Session) Cwd() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cwd
}

// Busy reports whether a command of the session is unfinished, also a job's.
func (s *Session) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil && s.cmd != nil
}

// markersMax is more bytes than the markers around a job's output take.
const markersMax = 4 << 10

// maxLog returns how many bytes the host keeps of a job's output. For a session that is no job's it
// is 0.
func (s *Session) maxLog() int64 {
	if s.job == nil {
		return 0
	}
	return min(s.opts.MaxLog, math.MaxInt64-markersMax) + markersMax
}
