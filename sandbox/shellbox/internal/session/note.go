package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// HandOver ends the session for its callers when the host has what was accepted for it. The session
// runs on there. An error is ctx's.
func (s *Session) HandOver(ctx context.Context) error {
	s.mu.Lock()
	if err := s.awaitBegunLocked(ctx); err != nil {
		s.mu.Unlock()
		return err
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
	if s.hasInputEnded() {
		sh.proc.Stdin().Close()
	}
	return sh.proc.(hostapi.KeptProcess).HandOver(ctx)
}

// awaitBegunLocked waits until the session's command, if there is one, has begun. It unlocks s.mu
// meanwhile. An error is ctx's.
func (s *Session) awaitBegunLocked(ctx context.Context) error {
	for c := s.cmd; c != nil && s.err == nil && c.phase.ToBegin(); c = s.cmd {
		begun, changed := c.begun.Wait(), c.changed.Wait()
		s.mu.Unlock()
		var err error
		select {
		case <-begun:
		case <-changed:
		case <-s.ended:
		case <-ctx.Done():
			err = ctxerr.Of(ctx)
		}
		s.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// A Note is what a program must know to Attach to a session. The Keeper stores it as JSON.
type Note struct {
	Mark   string   // of the Box's Env
	Dir    string   // of the Box
	Shell  []string // of the Box
	ID     string
	Job    string `json:",omitempty"` // the job's command; "": the session is no job's
	MaxLog int64  `json:",omitempty"` // the job's
	Env    []string
	// Pipes: the job is on pipes. InputEnded: EndInput has been called.
	Pipes, InputEnded bool     `json:",omitempty"`
	Added             []string `json:",omitempty"` // by AddEnv; only in the main session's note
	User              string   `json:",omitempty"`
	Secret            string   // of the shell's markers
	// Head is how many bytes the job's terminal showed before the output of its command.
	Head int64 `json:",omitempty"`
	// Given is the number of the last command whose result a call has returned. If this program is
	// killed, it may be one from before.
	Given int `json:",omitempty"`
	// Idle is set when the session was given away at its prompt.
	Idle *idleNote `json:",omitempty"`
	// Pipe, Image and TTY are what learnShell has found out; "" before.
	Pipe, Image, TTY string `json:",omitempty"`
	// Renewal is session.renewal.
	Renewal string `json:",omitempty"`
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
func (s *Session) noteGivenLocked(c *command) {
	s.given = max(s.given, c.seq)
	if !s.box.Keeps || s.job != nil || s.noting || s.err != nil {
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

// StoreNote stores the session's note on the host, if that is a Keeper. It is called when Added of
// the Box's Env has changed.
func (s *Session) StoreNote() {
	s.mu.Lock()
	sh := s.sh
	s.mu.Unlock()
	if sh != nil {
		s.storeNote(sh)
	}
}

func (s *Session) storeNote(sh *shell) { s.storeNoteWith(sh, nil) }

func (s *Session) storeNoteWith(sh *shell, idle *idleNote) {
	kept, ok := sh.proc.(hostapi.KeptProcess)
	if !ok || !s.box.Keeps {
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
		s.box.Log.Warn("the session will not be found by another program", "session", s.id, "error",
			err)
	}
}

// noteText returns the session's note. secret is that of its shell's markers, and head is as in a
// note.
func (s *Session) noteText(secret string, head int64, idle *idleNote) (string, error) {
	s.mu.Lock()
	n := Note{
		Mark: s.box.Env.Mark, Dir: s.box.Dir, Shell: s.box.Shell, ID: s.id, Env: s.opts.Env,
		User: s.opts.User, Secret: secret, Generation: s.seq / generation, Given: s.given,
		Idle: idle, Renewal: s.renewal, Pipes: s.opts.Pipes, InputEnded: s.inputEnded,
	}
	if s.sh != nil {
		n.Pipe, n.Image, n.TTY = s.sh.pipe, s.sh.image, s.sh.dialect.TTY
	}
	s.mu.Unlock()
	if s.id == "main" {
		n.Added = s.box.Env.Added()
	}
	if s.job != nil {
		n.Job, n.MaxLog, n.Head = s.job.command, s.opts.MaxLog, head
	}
	text, err := json.Marshal(n)
	return string(text), err
}

// Adopt makes the box continue what another program has begun, by the note of one of its sessions.
// It is called before the first session is made.
func (b *Box) Adopt(n Note) { b.Env.Mark, b.Dir, b.Shell = n.Mark, n.Dir, n.Shell }

// ParseNote returns the note of a process on a terminal of that many rows. ok is false if the
// process is no session's and no job's.
func ParseNote(rows int, text string) (n Note, ok bool) {
	ok = json.Unmarshal([]byte(text), &n) == nil && n.ID != "" && n.Pipes == (rows == 0) &&
		(!n.Pipes || n.Job != "")
	return n, ok
}

// List returns the notes of all sessions and jobs on the host of a box with a Sharer.
func (b *Box) List(ctx context.Context) (notes []Note, listed []hostapi.Listed, err error) {
	all, err := b.Sharer.Listed(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range all {
		if n, ok := ParseNote(l.Rows, l.Note); ok {
			notes, listed = append(notes, n), append(listed, l)
		}
	}
	return notes, listed, nil
}
