package shellbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// How a session finds out whether what it has started is a shell that it can use.

// maxEarly is how many bytes are kept of what a shell prints before its first prompt.
const maxEarly = 2 << 10

const (
	// how often a shell is looked at that has not answered its first line
	greetEvery = 50 * time.Millisecond
	// a shell answers sooner, once it has read the line and waits for the next
	deafAfter = 500 * time.Millisecond
)

// awaitGreeting waits until the shell has answered its first line. If the shell is of no use, it
// returns why.
func (s *session) awaitGreeting(ctx context.Context, sh *shell, seq int) error {
	var deaf time.Time // since when it has waited for input, without an answer
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
		case !s.waitsForInput(sh):
			deaf = time.Time{}
		case deaf.IsZero():
			deaf = time.Now()
		case time.Since(deaf) > deafAfter:
			return fmt.Errorf("it does not answer as a shell does: %s%s", dialect.Shells,
				s.earlyOutput(sh))
		}
	}
}

// checkAnswer returns why the shell cannot be used, by its first answer.
func (s *session) checkAnswer(sh *shell) error {
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
func (s *session) waitsForInput(sh *shell) bool {
	l, err := s.box.look(sh.proc)
	if err != nil || l.Gone || !sh.commands.idle() {
		return false
	}
	waits := l.Reads != ""
	for _, w := range l.Waits {
		waits = waits || w.PID == sh.pid && !dialect.IsShell(s.box.shellArgs())
	}
	return waits && !s.box.settle(sh.proc)
}

// earlyOutput returns, for an error, what a shell has printed before its first prompt.
func (s *session) earlyOutput(sh *shell) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.TrimSpace(terminal.Text(sh.earlyText))
	if text == "" {
		return ""
	}
	return fmt.Sprintf("; it printed %q", text)
}

// shellsHint returns, for an error, the shells that work, unless the program is one of them.
func (s *session) shellsHint() string {
	if dialect.IsShell(s.box.shellArgs()) {
		return ""
	}
	return "; " + dialect.Shells
}

// hideStartupEnv keeps from the shell what its environment would make it do before its first line:
// in bash PROMPT_COMMAND and TMOUT, in another shell the file that ENV names. It returns the value
// of ENV, or nil. The shell gets that with its first line, for the programs that it starts. bash -p
// ignores ENV.
func (s *session) hideStartupEnv(ctx context.Context, p *Program) *string {
	if path.Base(p.Args[0]) == "bash" {
		p.Env = append(slices.Clip(p.Env), "PROMPT_COMMAND=", "PS0=", "TMOUT=")
		return nil
	}
	value, set := "", false
	for _, kv := range p.Env {
		if v, ok := strings.CutPrefix(kv, "ENV="); ok {
			value, set = v, true
		}
	}
	if !set {
		host, known := s.hostENV(ctx, p)
		if known && !host.set {
			return nil
		}
		value, set = host.value, known
	}
	p.Env = append(slices.Clip(p.Env), "ENV=")
	if !set {
		return nil
	}
	return &value
}

// hostENV returns ENV as the host gives it to programs of p's user.
func (s *session) hostENV(ctx context.Context, p *Program) (host envValue, known bool) {
	b := s.box
	b.mu.Lock()
	host, known = b.hostENV[p.User]
	b.mu.Unlock()
	if known {
		return host, true
	}
	args := p.Args[:1]
	if path.Base(args[0]) == "busybox" && len(p.Args) > 1 {
		args = p.Args[:2]
	}
	asked, err := b.host.Start(ctx, Program{
		Args: append(slices.Clone(args), "-c", `printf %s "${ENV+x}${ENV-}"`),
		Env:  p.Env, User: p.User, Joined: true,
	})
	if err != nil { // the start of the shell will fail too, and say why
		return envValue{}, false
	}
	defer asked.Close()
	defer context.AfterFunc(ctx, func() { asked.Close() })()
	asked.Stdin().Close()
	said, err := io.ReadAll(io.LimitReader(asked.Stdout(), 64<<10))
	if err != nil || len(said) == 64<<10 {
		return envValue{}, false
	}
	// Close would come first, and the status be lost, if the program's output ends before it does.
	if status, err := asked.Wait(); err != nil || status.Code != 0 {
		return envValue{}, false
	}
	host.value, host.set = strings.CutPrefix(string(said), "x")
	b.mu.Lock()
	b.hostENV[p.User] = host
	b.mu.Unlock()
	return host, true
}

// An envValue is the value of a variable that may be set.
type envValue struct {
	value string
	set   bool
}
