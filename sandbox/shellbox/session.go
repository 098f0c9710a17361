package shellbox

import (
	"math"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// A session is a shell on a terminal. When the shell ends, another one takes its place.
type session struct {
	box  *Box
	id   string
	opts sandbox.SessionOptions
	job  *job // the job that owns the session; nil if none does

	readers sync.WaitGroup // all goroutines of the session
	ended   chan struct{}  // closed when err is set

	mu         sync.Mutex
	err        error  // why the session has ended: ErrClosed or ErrLost
	sh         *shell // nil before the first start
	ready      bool   // sh is at its prompt or runs cmd; false while it is being started
	seq        int    // the number of the last line
	lastAnswer int    // the number of the last End marker
	// no Begin marker has come since the last End marker, so the next status belongs to no command
	statusStale bool
	seqUnknown  bool // after Attach: the number of the unfinished command is not known
	status      int  // $?
	cwd         string
	restarted   bool // the shell ended between two commands: the next Result says so
	rows, cols  int
	screen      *terminal.Tail
	alternate   bool     // the last command has left the alternate screen on
	cmd         *command // the unfinished command, or nil
	// when the last command ended; before the first command, a time before the first shell
	lastEnd time.Time
	// the last command, if it ended while no call waited for it: Wait returns its Result
	unreported *command
}

// screenTail is how much raw output Screen is rendered from.
const screenTail = 256 << 10

func newSession(b *Box, id string, opts sandbox.SessionOptions) *session {
	return &session{
		box: b, id: id, opts: opts, rows: opts.Rows, cols: opts.Cols,
		screen: terminal.NewTail(screenTail),
		ended:  make(chan struct{}),
	}
}

// ID returns the session's id.
func (s *session) ID() string { return s.id }

// markersMax is more bytes than the markers around a job's output take.
const markersMax = 4 << 10

// maxLog returns how many bytes the host keeps of a job's output. For a session that is no job's it
// is 0.
func (s *session) maxLog() int64 {
	if s.job == nil {
		return 0
	}
	if s.opts.MaxLog > math.MaxInt64-markersMax {
		return math.MaxInt64
	}
	return s.opts.MaxLog + markersMax
}
