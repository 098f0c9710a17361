package shellbox

import (
	"context"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
)

// newShared returns what the sessions of the box need of it.
func (b *Box) newShared() *session.Box {
	shared := &session.Box{
		Name: b.String(), Log: b.log,
		Dir: b.opts.Dir, Shell: b.opts.Shell, Grace: b.opts.Grace, StartLimit: b.opts.StartLimit,
		Env:          b.env,
		Processes:    b.processes,
		ControlShell: b.control != nil,
		Start:        b.startShell,
		Wait: func(p session.Process) (session.Status, error) {
			status, err := p.(Process).Wait()
			return session.Status(status), err
		},
		Run:   b.runInCall,
		Lost:  b.lostOr,
		Touch: b.touch,
		Leave: b.leave,
	}
	if b.owner != nil { // another program could not tell the box from its owner
		shared.Owner = b.owner.shared
		return shared
	}
	_, shared.Keeps = b.host.(hostapi.Keeper)
	shared.Sharer, _ = b.host.(hostapi.Sharer)
	return shared
}

// startShell starts the shell of a session, or of a job on pipes.
func (b *Box) startShell(ctx context.Context, p session.Program) (session.Process, error) {
	program := Program{Args: p.Args, Dir: p.Dir, Env: p.Env, User: p.User, Spool: p.Spool}
	if !p.Pipes {
		program.Terminal = &Terminal{Rows: p.Rows, Cols: p.Cols, Commands: true}
	}
	return b.host.Start(ctx, program)
}
