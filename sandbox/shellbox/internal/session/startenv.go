package session

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// shellArgs returns the program that sessions run.
func (b *Box) shellArgs() []string { return dialect.Args(b.shell()) }

// shell returns Box.Shell, or sh where that is to be bash and there is none.
func (b *Box) shell() []string {
	if len(b.Shell) == 0 && b.noBash.Load() {
		return []string{"sh"}
	}
	return b.Shell
}

// hideStartupEnv keeps from the shell what its environment would make it do before its first line:
// in bash PROMPT_COMMAND and TMOUT, in another shell the file that ENV names. It returns the value
// of ENV, or nil. The shell gets that with its first line, for the programs that it starts. bash -p
// ignores ENV.
func (s *Session) hideStartupEnv(ctx context.Context, p *Program) *string {
	if path.Base(p.Args[0]) == "bash" {
		p.Env = append(slices.Clip(p.Env), "PROMPT_COMMAND=", "PS0=", "TMOUT=")
		return nil
	}
	var value *string
	for _, kv := range p.Env {
		if v, ok := strings.CutPrefix(kv, "ENV="); ok {
			value = &v
		}
	}
	if value == nil {
		var known bool
		if value, known = s.hostENV(ctx, p.Args); known && value == nil {
			return nil
		}
	}
	p.Env = append(slices.Clip(p.Env), "ENV=")
	return value
}

// hostENV returns the value of ENV that the host gives to programs of the session's user. nil: it
// gives none. shell is the program of the session.
func (s *Session) hostENV(ctx context.Context, shell []string) (value *string, known bool) {
	b := s.box
	b.mu.Lock()
	value, known = b.hostENV[s.opts.User]
	b.mu.Unlock()
	if known {
		return value, true
	}
	args := shell[:1]
	if path.Base(args[0]) == "busybox" && len(shell) > 1 {
		args = shell[:2]
	}
	ctx, said, stop := bounded.Capture(ctx, "the value of ENV", 64<<10)
	defer stop()
	status, err := b.Run(ctx, &sandbox.Cmd{
		Args: append(slices.Clone(args), "-c", `printf %s "${ENV+x}${ENV-}"`),
		Dir:  "/", Env: s.opts.Env, User: s.opts.User, Stdout: said, Stderr: said,
	})
	if err != nil || status != 0 { // the start of the shell will fail too, and say why
		return nil, false
	}
	if v, set := strings.CutPrefix(said.String(), "x"); set {
		value = &v
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hostENV == nil {
		b.hostENV = map[string]*string{}
	}
	b.hostENV[s.opts.User] = value
	return value, true
}
