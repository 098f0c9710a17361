package session

import (
	"context"
	"errors"
	"time"

	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/streams"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/waiting"
)

// How many bytes are written at once.
const (
	keysPiece    = 1 << 10 // to a terminal
	commandPiece = 32 << 10
)

// A shell is one process that runs a session's commands. It reads them from a pipe. Its terminal is
// for the programs.
type shell struct {
	proc     Process
	pid      int
	dialect  dialect.Dialect
	commands *streams.Typist // on the pipe
	keys     *streams.Typist // on the terminal
	scan     dialect.Scanner
	answered broadcast.Signal // with each End marker
	exited   chan struct{}    // closed when the process has ended
	ended    chan struct{}    // closed when, after that, all its output has been read

	// Set before ended is closed.
	status Status // how the process has ended
	lost   error  // why there is no status: the host is gone
	oom    bool   // the kernel had killed because of memory

	readBytes int64 // bytes of output that were read; for the terminal's reader only
	jobStart  int64 // bytes of output that came before the job's

	// Set by learnShell.
	pipe  string // what an idle shell reads, see proc.Look; "": unknown
	image string // the program, see proc.Look; "": unknown

	// Guarded by session.mu.
	phase     phase.Shell
	earlyText []byte       // the beginning of its output before its first prompt
	idleTimer *time.Timer  // fires before the shell ends because it is idle
	inherited *inheritance // from an interactive shell that exec has put in its place
	// No Begin marker has come since the last End marker, so the next status belongs to no command.
	statusStale bool
}

func newShell(p Process, d dialect.Dialect) *shell {
	sh := &shell{
		proc: p, pid: p.PID(), phase: phase.Starting,
		dialect:  d,
		commands: streams.NewTypist(p.Commands(), commandPiece),
		keys:     streams.NewTypist(p.Stdin(), keysPiece),
		exited:   make(chan struct{}), ended: make(chan struct{}),
	}
	sh.scan = sh.dialect.Scanner()
	return sh
}

// awaitWritten waits until the shell's process has what was written for it. An error is ctx's.
func (sh *shell) awaitWritten(ctx context.Context) error {
	if err := sh.commands.AwaitIdle(ctx); err != nil {
		return err
	}
	return sh.keys.AwaitIdle(ctx)
}

// runLocked starts the goroutines of a shell.
func (s *Session) runLocked(sh *shell) {
	sh.commands.Start(&s.readers)
	sh.keys.Start(&s.readers)
	s.shareLocked(sh)
	s.readers.Go(func() { s.readTerminal(sh) })
}

// confirmEvery is how long an idle shell may take to answer before it is asked again. Each further
// time is four times as long, because a busy machine may have read the answer and not passed it on.
const confirmEvery = 50 * time.Millisecond

const promptGrace = 10

// confirmShell asks the shell and returns when it has answered, so that all earlier interrupts have
// passed. A shell that does not answer is replaced. A command in its prompt (PROMPT_COMMAND) may
// take promptGrace times Options.Grace. It may never end: it can even read the question.
func (s *Session) confirmShell(sh *shell) {
	begin := time.Now()
	for try := 1; ; try++ {
		s.mu.Lock()
		if try == maxTries {
			sh.commands.Write(dialect.Repair)
		}
		seq, ok := s.askShellLocked(sh)
		s.mu.Unlock()
		if !ok {
			return
		}
		asked := time.Now()
		for idle := 0; idle < 2; idle++ { // an interrupt may have made the shell drop the line
			ctx, cancel := context.WithTimeout(context.Background(), confirmEvery<<(2*(try-1)))
			err := s.awaitAnswer(ctx, sh, seq)
			cancel()
			if err == nil || !errors.Is(err, context.DeadlineExceeded) {
				return
			}
			l, err := s.box.Processes.Look(sh.proc)
			switch {
			case time.Since(begin) > promptGrace*s.box.Grace:
				try = maxTries
			case err != nil || sh.pipe == "" || l.Reads != sh.pipe:
				idle = -1 // it is at work, with a prompt command perhaps
			case (s.box.Processes.Settle(sh.proc) || !sh.commands.Idle()) &&
				time.Since(asked) < waiting.Surely:
				idle = -1 // the question or the answer is on its way: the machine is busy
			}
		}
		if try == maxTries {
			s.mu.Lock()
			s.replaceShellLocked(sh)
			s.mu.Unlock()
			return
		}
	}
}
