package shellbox

import (
	"context"
	"io"
	"path"
	"slices"
	"strings"
)

// hideStartupEnv keeps from the shell what its environment would make it do before its first line:
// in bash PROMPT_COMMAND and TMOUT, in another shell the file that ENV names. It returns the value
// of ENV, or nil. The shell gets that with its first line, for the programs that it starts. bash -p
// ignores ENV.
func (s *session) hideStartupEnv(ctx context.Context, p *Program) *string {
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
		if value, known = s.hostENV(ctx, p); known && value == nil {
			return nil
		}
	}
	p.Env = append(slices.Clip(p.Env), "ENV=")
	return value
}

// hostENV returns the value of ENV that the host gives to programs of p's user. nil: it gives none.
func (s *session) hostENV(ctx context.Context, p *Program) (value *string, known bool) {
	b := s.box
	b.mu.Lock()
	value, known = b.hostENV[p.User]
	b.mu.Unlock()
	if known {
		return value, true
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
		return nil, false
	}
	defer asked.Close()
	defer context.AfterFunc(ctx, func() { asked.Close() })()
	asked.Stdin().Close()
	said, err := io.ReadAll(io.LimitReader(asked.Stdout(), 64<<10))
	if err != nil || len(said) == 64<<10 {
		return nil, false
	}
	// Close would come first, and the status be lost, if the program's output ends before it does.
	if status, err := asked.Wait(); err != nil || status.Code != 0 {
		return nil, false
	}
	if v, set := strings.CutPrefix(string(said), "x"); set {
		value = &v
	}
	b.mu.Lock()
	b.hostENV[p.User] = value
	b.mu.Unlock()
	return value, true
}
