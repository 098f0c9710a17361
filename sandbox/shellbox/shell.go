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
	exited   chan struct{}    // closed when its process has ended
	// closed when the shell has ended, and all that it has printed was read,
	ended  chan struct{}
	status Status // so,
	lost   error  // or nobody knows how: the host is gone
	oom    bool   // and the kernel had killed because of memory

	// bytes of the terminal's output that have been taken; only its reader looks at it
	readBytes int64
	jobStart  int64 // as many of them came before the output of a job

	pipe  string // what the shell reads when it waits for a command, see proc.Look; "": unknown
	image string // its program's, see proc.Look; "": unknown

	// it was found stopped: what says that a command has ended need not be its own; see session.mu
	stopped bool

	earlyText []byte      // what it printed before its first prompt, the begin; see session.mu
	idleTimer *time.Timer // asks it before it ends because it is idle; see session.mu

	// what another interactive shell, which exec had put in its place, has left
	inherited *inheritance
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
