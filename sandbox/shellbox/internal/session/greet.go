package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// How a session finds out whether what it has started is a shell that it can use.

// maxEarly is how many bytes are kept of what a shell prints before its first prompt.
const maxEarly = 2 << 10

const (
	// greetEvery is how often a shell that has not answered its first line is looked at.
	greetEvery = 50 * time.Millisecond
	// noAnswer is how long a program may wait for its next line without having answered the first.
	// A shell answers sooner.
	noAnswer = 500 * time.Millisecond
)

// awaitGreeting waits until the shell has answered its first line. If the shell is of no use, it
// returns why.
func (s *Session) awaitGreeting(ctx context.Context, sh *shell, seq int) error {
	var waiting time.Time // since when it has waited for input, without an answer
	for {
		soon, cancel := context.WithTimeout(ctx, greetEvery)
		err := s.awaitAnswer(soon, sh, seq)
		cancel()
		switch {
		case err == nil:
			return s.checkAnswer(sh)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		case !s.waitsForInputUnlessAnswered(ctx, sh, seq):
			waiting = time.Time{}
		case waiting.IsZero():
			waiting = time.Now()
		case time.Since(waiting) > noAnswer:
			return fmt.Errorf("it does not answer as a shell does: %s%s", dialect.Shells,
				s.earlyOutput(sh))
		}
	}
}

// checkAnswer returns why the shell cannot be used, by its first answer.
func (s *Session) checkAnswer(sh *shell) error {
	s.mu.Lock()
	status := s.status
	s.mu.Unlock()
	switch status {
	case dialect.ReadsCommands:
		return errors.New("it does not keep its commands apart from what programs read: " +
			dialect.Shells)
	case dialect.NoTerminal:
		return errors.New("/dev/tty is missing or no device: without it no shell has a terminal")
	case dialect.NoNull:
		return errors.New("/dev/null is missing or no device")
	}
	return nil
}

// waitsForInput reports whether the program waits for its next line although it has read the first
// one. A program that is no known shell is also taken to wait if it reads its terminal. A shell may
// do that in its startup files.
func (s *Session) waitsForInput(sh *shell) bool {
	l, err := s.box.Processes.Look(sh.proc)
	if err != nil || l.Gone || !sh.commands.Idle() {
		return false
	}
	waits := l.Reads != ""
	for _, w := range l.Waits {
		waits = waits || w.PID == sh.pid && !dialect.IsShell(s.box.shellArgs())
	}
	return waits && !s.box.Processes.Settle(sh.proc)
}

// waitsForInputUnlessAnswered is waitsForInput, but it returns false as soon as the shell has
// answered line seq. On a distant host a look takes long.
func (s *Session) waitsForInputUnlessAnswered(ctx context.Context, sh *shell, seq int) bool {
	looking, cancel := context.WithCancel(ctx)
	defer cancel()
	waits := make(chan bool, 1)
	s.readers.Go(func() {
		waits <- s.waitsForInput(sh)
		cancel()
	})
	if s.awaitAnswer(looking, sh, seq) == nil {
		return false
	}
	select {
	case w := <-waits:
		return w
	default: // the caller finds what has ended
		return false
	}
}

// earlyOutput returns, for an error, what a shell has printed before its first prompt.
func (s *Session) earlyOutput(sh *shell) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.TrimSpace(terminal.Text(sh.earlyText))
	if text == "" {
		return ""
	}
	return fmt.Sprintf("; it printed %q", text)
}

// shellsHint returns, for an error, the shells that work, unless the program is one of them.
func (s *Session) shellsHint() string {
	if dialect.IsShell(s.box.shellArgs()) {
		return ""
	}
	return "; " + dialect.Shells
}
