package shellbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/shellstate"
)

// A saved is what Save writes.
type saved struct {
	Env      []string // of the host's programs
	Added    []string // by AddEnv
	Count    int      // the number of the last session that was opened
	Sessions []savedSession
}

type savedSession struct {
	ID         string
	User       string
	Dir        string // where a shell that replaces this one starts
	Env        []string
	Rows, Cols int
	PID        int // of its shell
	Bash       bool
	Status     int // $?
	State      []byte
	Lost       []sandbox.Loss // what no copy has
}

// restoredAtOnce is how many sessions Restore makes side by side.
const restoredAtOnce = 4

// MaxSaved is how many bytes Save writes and Restore reads, at most.
const MaxSaved = 256 << 20

// Further bounds of what Save writes and Restore reads.
const (
	maxSavedSessions = 1000
	maxSavedID       = 1 << 30
)

// Save returns the state of all open sessions of b as bytes for Restore, and what a copy would not
// have, whatever its kind: see [sandbox.Like]. The state holds the values of all variables, so it
// is secret. If the command of a session is unfinished, the error is sandbox.ErrBusy.
//
// Save is for hosts that can copy the place where b is. All processes there descend from main,
// which belongs to the host. Those that are no shell of a session are sandbox.Programs. env,
// "NAME=value", is what the host adds to the environment of all programs.
//
// Save makes each session a copy in b, compares the two, and kills the copy's shell.
func Save(ctx context.Context, b *Box, main int, env []string) (state []byte,
	lost []sandbox.Loss, err error) {
	ctx, done, err := b.beginCall(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	before := b.processes.Tree(main)
	all := saved{Env: env}
	for _, s := range b.Sessions() {
		one, err := b.save(ctx, s.(*session.Session))
		if err != nil {
			return nil, nil, ctxerr.Explain(ctx, err)
		}
		all.Sessions = append(all.Sessions, *one)
		lost = append(lost, one.Lost...)
	}
	b.mu.Lock()
	all.Added, all.Count = b.env.Added(), b.count["session"]
	b.mu.Unlock()
	now := b.processes.Tree(main)
	if len(before) == 0 || len(now) == 0 {
		return nil, nil, errors.New("the host does not say which programs run")
	}
	lost = append(b.programs(&all, main, proc.Left(before, now), now), lost...)
	if state, err = json.Marshal(all); err == nil && len(state) > MaxSaved {
		err = fmt.Errorf("the state of the sessions takes more than %d bytes", MaxSaved)
	}
	return state, lost, err
}

// save reads the state of one session, and tries it out.
func (b *Box) save(ctx context.Context, s *session.Session) (*savedSession, error) {
	opts := sandbox.NewSessionOptions(sandbox.Like(s), sandbox.Accept(sandbox.AnyLoss))
	named := opts
	like, err := b.like(ctx, &opts)
	if err != nil {
		return nil, err
	}
	opts.Like, like.lost = nil, nil // the caller looks for programs
	for {
		trial := session.New(b.shared, b.newID("trial"), opts, nil)
		err := b.startLike(ctx, trial, like, named)
		trial.Drop(err, true)
		if err == nil {
			break
		}
		if !b.isTaken("trial", err) {
			return nil, fmt.Errorf("try out a copy of %s: %w", s.ID(), err)
		}
	}
	o := s.Options()
	return &savedSession{ID: s.ID(), User: o.User, Dir: o.Dir, Env: o.Env,
		Rows: opts.Rows, Cols: opts.Cols, PID: like.shell.PID, Bash: like.shell.Bash,
		Status: like.status, State: like.state.Encode(), Lost: like.lost}, nil
}

// programs returns the losses for programs that are neither the host's nor the shell of a session.
// The host runs itself to serve files.
func (b *Box) programs(all *saved, main int, left, now []proc.Process) (lost []sandbox.Loss) {
	shells, sessions := map[int]string{}, map[int]bool{}
	for _, s := range all.Sessions {
		shells[s.PID], sessions[s.PID] = s.ID, true
	}
	for id, pid := range b.jobShells() {
		shells[pid] = id
	}
	parents := map[int]int{}
	for _, p := range now {
		parents[p.PID] = p.Parent
	}
	for _, p := range left {
		host := p.PID == main || p.Parent == main && (p.Name == "exe" || p.Name == "boxd")
		if host || sessions[p.PID] {
			continue
		}
		of, pid := "", p.PID
		for range now {
			if of = shells[pid]; of != "" {
				break
			}
			pid = parents[pid]
		}
		lost = append(lost, sandbox.Loss{Kind: sandbox.Programs, Session: of, PID: p.PID,
			What: processes.Name(p)})
	}
	return lost
}

// jobShells returns the process ids of the shells of jobs, by the jobs' ids.
func (b *Box) jobShells() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	pids := map[string]int{}
	for _, j := range b.jobs {
		pids[j.ID()] = j.ShellPID()
	}
	return pids
}

// Restore gives b, which New has just made in a copy of another box's place, the sessions that Save
// has saved there, under their ids. env is what the host adds to the environment now: where it
// differs from what Save was given, it wins over the variables of the sessions.
//
// If a copy lacks more than Save has told, the error is a *sandbox.IncompleteError. After an error
// the caller closes b.
func Restore(ctx context.Context, b *Box, state []byte, env []string) error {
	var all saved
	if len(state) > MaxSaved || json.Unmarshal(state, &all) != nil {
		return errors.New("the state of the sessions is damaged")
	}
	if err := all.check(); err != nil {
		return fmt.Errorf("the state of the sessions is damaged: %w", err)
	}
	ctx, done, err := b.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	b.mu.Lock()
	b.env.AddBefore(all.Added...)
	b.count["session"] = max(b.count["session"], all.Count)
	b.mu.Unlock()
	keep := []string{"HOSTNAME="}
	for _, kv := range env {
		if !slices.Contains(all.Env, kv) {
			keep = append(keep, kv)
		}
	}
	ended := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := make([][]sandbox.Loss, len(all.Sessions))
	free := make(chan struct{}, restoredAtOnce)
	var restoring sync.WaitGroup
	for i, one := range all.Sessions {
		free <- struct{}{}
		restoring.Go(func() {
			defer func() { <-free }()
			var err error
			if lost[i], err = b.restore(ctx, one, keep); err != nil {
				cancel(fmt.Errorf("restore %s: %w", one.ID, err)) // the first one counts
			}
		})
	}
	restoring.Wait()
	if err := context.Cause(ctx); err != nil {
		return ctxerr.Explain(ended, err)
	}
	refused := &sandbox.IncompleteError{Lost: slices.Concat(lost...)}
	b.noteAdded()
	if len(refused.Lost) > 0 {
		return refused
	}
	return nil
}

// check returns an error if the box's programs have made something else of it.
func (all *saved) check() error {
	if len(all.Sessions) > maxSavedSessions || all.Count < 0 || all.Count > maxSavedID {
		return errors.New("too many sessions")
	}
	seen := map[string]bool{}
	for _, s := range all.Sessions {
		n := numberOf(s.ID)
		if s.ID != "main" && (n <= 0 || n > all.Count || s.ID != fmt.Sprintf("session-%d", n)) ||
			seen[s.ID] {
			return fmt.Errorf("%q is no id of a session", s.ID)
		}
		if err := session.CheckSize(s.Rows, s.Cols); err != nil {
			return err
		}
		seen[s.ID] = true
	}
	if !seen["main"] {
		return errors.New("the main session is missing")
	}
	return nil
}

// restore makes one session. It returns the losses that Save has not told.
func (b *Box) restore(ctx context.Context, one savedSession, keep []string) ([]sandbox.Loss,
	error) {
	state, err := shellstate.Decode(one.State)
	if err != nil {
		return nil, err
	}
	user, err := b.userFor(one.User)
	if err != nil {
		return nil, err
	}
	like := &likeness{
		shell: shellstate.Session{ID: one.ID, PID: one.PID, Bash: one.Bash},
		user:  user, state: state, status: one.Status,
	}
	// keep is what is not taken from the state.
	named := sandbox.SessionOptions{Env: keep, Accept: sandbox.AnyLoss}
	if one.ID == "main" {
		b.mu.Lock()
		main := b.session
		b.mu.Unlock()
		if err = main.Resize(ctx, one.Rows, one.Cols); err == nil {
			err = like.apply(ctx, main, named)
		}
	} else {
		opts := sandbox.NewSessionOptions(sandbox.Env(one.Env...), sandbox.Dir(one.Dir))
		opts.User, opts.Rows, opts.Cols = user, one.Rows, one.Cols
		s := session.New(b.shared, one.ID, opts, nil)
		if err = b.startLike(ctx, s, like, named); err != nil {
			s.Drop(err, true)
		} else {
			b.addSession(s)
		}
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(like.lost, func(l sandbox.Loss) bool {
		return slices.ContainsFunc(one.Lost, func(told sandbox.Loss) bool {
			return told.Kind == l.Kind && told.What == l.What
		})
	}), nil
}
