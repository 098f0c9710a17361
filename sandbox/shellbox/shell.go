package shellbox

import (
	"context"
	"errors"
	"time"

	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// A shell is one process that runs a session's commands. It reads them from a pipe. Its terminal is
// for the programs.
type shell struct {
	proc     Process
	pid      int
	dialect  dialect.Dialect
	commands *typist // on the pipe
	keys     *typist // on the terminal
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

	// Set by learn.
	pipe  string // what an idle shell reads, see proc.Look; "": unknown
	image string // the program, see proc.Look; "": unknown

	// Guarded by session.mu.
	stopped   bool         // it was found stopped, so its End markers may be forged
	earlyText []byte       // the begin of what it printed before its first prompt
	idleTimer *time.Timer  // fires before the shell ends because it is idle
	inherited *inheritance // from an interactive shell that exec has put in its place
}

func newShell(p Process, secret string) *shell {
	sh := &shell{
		proc: p, pid: p.PID(), dialect: dialect.Dialect{Secret: secret, TTY: "/dev/tty"},
		commands: newTypist(p.Commands(), commandPiece), keys: newTypist(p.Stdin(), keysPiece),
		exited: make(chan struct{}), ended: make(chan struct{}),
	}
	sh.scan = sh.dialect.Scanner()
	return sh
}

// runLocked starts the goroutines of a shell.
func (s *session) runLocked(sh *shell) {
	sh.commands.start(&s.readers)
	sh.keys.start(&s.readers)
	s.readers.Go(func() { s.readTerminal(sh) })
}

// confirmEvery is how long an idle shell may take to answer before it is asked again. Each further
// time is four times as long, because a busy machine may have read the answer and not passed it on.
const confirmEvery = 50 * time.Millisecond

// confirmShell asks the shell and returns when it has answered, so that all earlier interrupts have
// passed. A shell that does not answer is replaced.
func (s *session) confirmShell(sh *shell) {
	for try := 1; ; try++ {
		s.mu.Lock()
		seq := s.nextSeqLocked()
		if try == maxTries {
			sh.commands.write(dialect.Repair)
		}
		sh.commands.write(sh.dialect.Ask(seq))
		s.mu.Unlock()
		asked := time.Now()
		for idle := 0; idle < 2; idle++ { // an interrupt may have made the shell drop the line
			ctx, cancel := context.WithTimeout(context.Background(), confirmEvery<<(2*(try-1)))
			err := s.awaitAnswer(ctx, sh, seq)
			cancel()
			if err == nil || !errors.Is(err, context.DeadlineExceeded) {
				return
			}
			if l, err := s.box.look(sh.proc); err != nil || sh.pipe == "" || l.Reads != sh.pipe {
				idle = -1 // it is at work, with a prompt command perhaps
			} else if (s.box.settle(sh.proc) || !sh.commands.idle()) && time.Since(asked) < surely {
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
