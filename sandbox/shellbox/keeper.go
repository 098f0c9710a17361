package shellbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// Detach closes the Box and leaves everything in it running, for another program to Attach to.
//
// What the methods of the Box have accepted reaches the host before: jobs and commands have begun,
// and input is on its way to their programs. Detach waits for that, also for a new connection if
// it is cut, but not longer than 10 s. If the time is over, Detach closes the Box all the same, and
// the error wraps context.DeadlineExceeded and names the sessions that have lost something.
//
// After any other error the Box stays open, and the error says why nothing would be left running.
// It is errors.ErrUnsupported if programs do not outlive the Host, and sandbox.ErrClosed after
// Close.
func (b *Box) Detach() error {
	if err := b.detach(); err != nil {
		return fmt.Errorf("detach from %s: %w", b, err)
	}
	if err := b.shutDown(); err != nil {
		return fmt.Errorf("detach from %s: %w", b, err)
	}
	return nil
}

// detach marks the box as closed, for the end that leaves it running.
func (b *Box) detach() error {
	keeper, ok := b.host.(hostapi.Keeper)
	if !ok || b.owner != nil {
		return fmt.Errorf("%w: what runs in it does not outlive it", errors.ErrUnsupported)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return sandbox.ErrClosed
	}
	if err := keeper.Detach(); err != nil {
		return err
	}
	b.closed, b.detached = true, true
	return nil
}

// handOverLimit bounds the wait until the host has what was accepted for its sessions.
const handOverLimit = 10 * time.Second

// handOver ends sessions for their callers, and leaves them running on the host. Until the host has
// what was accepted for a session, the session's calls work.
func (b *Box) handOver(sessions map[string]*session) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), handOverLimit, fmt.Errorf(
		"the host has not got all that was typed or begun within %v: %w", handOverLimit,
		context.DeadlineExceeded))
	defer cancel()
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for _, s := range sessions {
		all.Go(func() {
			if err := s.handOver(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w", s.id, err))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// handOver ends the session when the host has what was accepted for it. An error is ctx's.
func (s *session) handOver(ctx context.Context) error {
	s.mu.Lock()
	for c := s.cmd; c != nil && s.err == nil && (c.phase == queued || c.phase == sent); c = s.cmd {
		begun, changed := c.begun.Wait(), c.changed.Wait()
		s.mu.Unlock()
		select {
		case <-begun:
		case <-changed:
		case <-s.ended:
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
		s.mu.Lock()
	}
	sh := s.sh
	s.failLocked(sandbox.ErrClosed)
	s.mu.Unlock()
	if sh == nil { // another program may have the turn
		return nil
	}
	s.storeNote(sh)
	if err := sh.awaitWritten(ctx); err != nil {
		return err
	}
	return sh.proc.(hostapi.KeptProcess).HandOver(ctx)
}

// A note is what a program must know to Attach to a session. The Keeper stores it.
type note struct {
	Mark   string   // the box's
	Dir    string   // Options.Dir
	Shell  []string // Options.Shell
	ID     string
	Job    string `json:",omitempty"` // the job's command; "": the session is no job's
	MaxLog int64  `json:",omitempty"` // the job's
	Env    []string
	Added  []string `json:",omitempty"` // by AddEnv; only in the main session's note
	User   string   `json:",omitempty"`
	Secret string   // of the shell's markers
	// Head is how many bytes the job's terminal showed before the output of its command.
	Head int64 `json:",omitempty"`
	// Given is the number of the last command whose result a call has returned. If this program is
	// killed, it may be one from before.
	Given int `json:",omitempty"`
	// Idle is set when the session was given away at its prompt.
	Idle *idleNote `json:",omitempty"`
	// Generation counts the programs that have attached. Each numbers its lines from another number
	// on.
	Generation int
}

// generation is the distance between the numbers from which two successive programs number the
// lines of one shell.
const generation = 1 << 24

// givenDelay is the time in which several results are noted as given at once.
const givenDelay = 20 * time.Millisecond

// noteGivenLocked notes that a call returns the result of c. The host learns of it soon: that costs
// the calls nothing, and a fast sequence of commands one message.
func (s *session) noteGivenLocked(c *command) {
	s.given = max(s.given, c.seq)
	if _, ok := s.box.host.(hostapi.Keeper); !ok || s.job != nil || s.noting || s.err != nil {
		return
	}
	s.noting = true
	time.AfterFunc(givenDelay, func() {
		s.mu.Lock()
		sh := s.sh
		s.noting = false
		s.mu.Unlock()
		if sh != nil {
			s.spawn(func() { s.storeNote(sh) })
		}
	})
}

// storeNote stores the session's note on the host, if that is a Keeper.
func (s *session) storeNote(sh *shell) { s.storeNoteWith(sh, nil) }

func (s *session) storeNoteWith(sh *shell, idle *idleNote) {
	kept, ok := sh.proc.(hostapi.KeptProcess)
	if !ok || s.box.owner != nil { // another program could not tell the box from its owner
		return
	}
	s.mu.Lock()
	head := sh.jobStart
	s.mu.Unlock()
	text, err := s.noteText(sh.dialect.Secret, head, idle)
	if err == nil {
		err = kept.SetNote(text)
	}
	if err != nil {
		s.box.log.Warn("the session will not be found by another program", "session", s.id, "error",
			err)
	}
}

// noteText returns the session's note. secret is that of its shell's markers, and head is as in a
// note.
func (s *session) noteText(secret string, head int64, idle *idleNote) (string, error) {
	s.mu.Lock()
	n := note{
		Mark: s.box.mark, Dir: s.box.opts.Dir, Shell: s.box.opts.Shell, ID: s.id, Env: s.opts.Env,
		User: s.opts.User, Secret: secret, Generation: s.seq / generation, Given: s.given,
		Idle: idle,
	}
	s.mu.Unlock()
	if s.id == "main" {
		s.box.mu.Lock()
		n.Added = slices.Clone(s.box.added)
		s.box.mu.Unlock()
	}
	if s.job != nil {
		n.Job, n.MaxLog, n.Head = s.job.command, s.opts.MaxLog, head
	}
	text, err := json.Marshal(n)
	return string(text), err
}
