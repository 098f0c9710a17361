package shellbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// Detach closes the Box and leaves everything in it running, for another program to Attach to.
// After an error the Box stays open, and the error says why nothing would be left running. It is
// errors.ErrUnsupported if programs do not outlive the Host, and sandbox.ErrClosed after Close.
func (b *Box) Detach() error {
	if err := b.detach(); err != nil {
		return fmt.Errorf("detach from %s: %w", b, err)
	}
	b.downErr = b.shutDown()
	close(b.down)
	return b.downErr
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
	// Generation counts the programs that have attached. Each numbers its lines from another number
	// on.
	Generation int
}

// generation is the distance between the numbers from which two successive programs number the
// lines of one shell.
const generation = 1 << 24

// note stores the session's note on the host, if that is a Keeper.
func (s *session) note(sh *shell) {
	kept, ok := sh.proc.(hostapi.KeptProcess)
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
