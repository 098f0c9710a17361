package shellbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sandshell/sandshell/sandbox"
)

// A Keeper is a Host whose programs belong to the host, not to the connection. They run on after
// Detach and Close, and after the end of this program, and another program can Attach to them. A
// Keeper's Start returns KeptProcesses.
type Keeper interface {
	Host
	// Kept returns the processes that run on the host, and those that have ended and have not been
	// closed.
	Kept(ctx context.Context) ([]Kept, error)
	// Detach makes the following Close leave everything running. If the host would end by itself
	// nevertheless, Detach changes nothing and returns an error that says so. Detach must return at
	// once: the Box holds a lock during the call.
	Detach() error
}

// A KeptProcess is a Process of a Keeper.
type KeptProcess interface {
	Process
	// SetNote has the host keep a text with the process, for Kept. It replaces the text before.
	SetNote(note string) error
	// Detach lets go of the process, as Close does, and leaves the program running. After either of
	// them the other does nothing.
	Detach()
}

// A Kept is a process that was started by another program.
type Kept struct {
	Process    KeptProcess
	Note       string // the last SetNote's
	Rows, Cols int    // of its terminal; 0: none
	Backlog    int64  // how many bytes of its output can be read already
	Skipped    int64  // how many bytes came before them, and are no longer kept
}

// A Forgetter is a KeptProcess whose Keeper keeps the output of a Program.Spool after Close.
type Forgetter interface {
	// Forget drops that output. The program has ended.
	Forget(ctx context.Context) error
}

// A SkippedError is what reading a process's Stdout returns where the next bytes are no longer
// kept. Reading goes on behind them.
type SkippedError struct{ Bytes int64 }

func (e *SkippedError) Error() string {
	return fmt.Sprintf("%d bytes of the output are no longer kept", e.Bytes)
}

// Detach closes the Box and leaves everything in it running, for another program to Attach to.
// After an error the Box stays open, and the error says why nothing would be left running:
// errors.ErrUnsupported if the Host is no Keeper, sandbox.ErrClosed after Close, else the Keeper's
// own error.
func (b *Box) Detach() error {
	if err := b.detach(); err != nil {
		return fmt.Errorf("detach from %s: %w", b, err)
	}
	b.downErr = b.shutDown()
	close(b.down)
	return b.downErr
}

// detach is the first part of Close, for a box that is left running.
func (b *Box) detach() error {
	keeper, ok := b.host.(Keeper)
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

// A note tells another program what it has to know to Attach to a session.
type note struct {
	Mark   string   // the box's
	Dir    string   // Options.Dir
	Shell  []string // Options.Shell
	ID     string
	Job    string `json:",omitempty"` // its command, if it is one's
	MaxLog int64  `json:",omitempty"` // the job's
	Env    []string
	Added  []string `json:",omitempty"` // by AddEnv, in the main session's note
	User   string   `json:",omitempty"`
	Secret string   // of the shell's markers
	// the job's: how much the terminal showed before its output
	Head int64 `json:",omitempty"`
	// how many programs have attached: each numbers its lines from another number on
	Generation int
}

// generation is how far apart the numbers are at which two programs, one after the other, begin to
// number the lines of one shell.
const generation = 1 << 24

// note has the host keep the session's note, if it is a Keeper.
func (s *session) note(sh *shell) {
	kept, ok := sh.proc.(KeptProcess)
	if !ok || s.box.owner != nil { // another program could not tell the box from its owner
		return
	}
	s.mu.Lock()
	n := note{
		Mark: s.box.mark, Dir: s.box.opts.Dir, Shell: s.box.opts.Shell, ID: s.id, Env: s.opts.Env,
		User:   s.opts.User,
		Secret: sh.dialect.Secret, Generation: s.seq / generation,
	}
	head := sh.jobStart
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
	if err == nil {
		err = kept.SetNote(string(text))
	}
	if err != nil {
		s.box.log.Warn("the session will not be found by another program", "session", s.id, "error",
			err)
	}
}
