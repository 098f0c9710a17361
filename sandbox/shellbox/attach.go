package shellbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
)

// Attach takes over what another program has left running on the host: its sessions with their
// directories, variables and unfinished commands, and its jobs with their logs. The Box owns the
// host, as after New. The Dir and Shell of the other program replace those of opts.
//
// A session's unfinished command goes on. Wait, Input and Interrupt work, with as much of its
// output as the host has kept. If it has ended in between, Wait returns its result. That may be one
// that the other program has got too, if it was killed within 20 ms after that. Attach ends the
// Runs that the other program had under way.
//
// If Attach fails, sessions and jobs run on, and the caller still owns the host, to close it or to
// let go of it. Only hosts of this module can be attached to: for any other, the error is
// errors.ErrUnsupported.
func Attach(ctx context.Context, host Host, opts Options) (*Box, error) {
	keeper, ok := host.(hostapi.Keeper)
	if !ok {
		return nil, fmt.Errorf("attach: %w: the host's programs do not outlive a connection",
			errors.ErrUnsupported)
	}
	b := newBox(host, opts, nil, "")
	kept, err := keeper.Kept(ctx)
	fail := func(err error) (*Box, error) {
		b.abandon(kept)
		return nil, fmt.Errorf("attach: %w", err)
	}
	if err != nil {
		return fail(err)
	}
	notes := make([]note, len(kept))
	for i, k := range kept {
		n := &notes[i]
		if k.Rows <= 0 || json.Unmarshal([]byte(k.Note), n) != nil || n.ID == "" {
			if !k.Ended {
				b.processes.KillTree(k.Process.PID()) // no session's: a Run
			}
			k.Process.Close()
			*n = note{}
			continue
		}
		b.mark, b.opts.Dir, b.opts.Shell = n.Mark, n.Dir, n.Shell
		if n.ID == "main" {
			b.added = n.Added
		}
	}
	for i, n := range notes {
		if n.ID == "" {
			continue
		}
		if kind, _, ok := strings.Cut(n.ID, "-"); ok { // later ids are greater
			b.count[kind] = max(b.count[kind], numberOf(n.ID))
		}
		if err := b.attachSession(ctx, kept[i], n); err != nil {
			return fail(fmt.Errorf("%s: %w", n.ID, err))
		}
	}
	b.mu.Lock()
	slices.SortFunc(b.jobs, func(a, c *job) int { return numberOf(a.id) - numberOf(c.id) })
	b.session = b.sessions["main"]
	b.mu.Unlock()
	if b.session != nil {
		return b, nil
	}
	if b.session, err = b.open(ctx, "main", nil, sandbox.NewSessionOptions()); err != nil {
		return fail(err)
	}
	return b, nil
}

// abandon undoes a failed Attach. It lets go of the host's processes, and ends what the Box has
// begun with them.
func (b *Box) abandon(kept []hostapi.Kept) {
	b.mu.Lock()
	b.closed = true
	sessions, jobs := b.sessions, b.jobs
	b.sessions = map[string]*session{}
	b.mu.Unlock()
	close(b.closing)
	b.calls.Wait()
	for _, s := range sessions {
		s.fail(sandbox.ErrClosed)
	}
	for _, k := range kept {
		k.Process.Detach()
	}
	for _, s := range sessions {
		s.readers.Wait()
	}
	for _, j := range jobs {
		j.release()
	}
	if b.control != nil {
		b.control.Close()
	}
}

// attachSession makes a session, or a job, of a kept process.
func (b *Box) attachSession(ctx context.Context, k hostapi.Kept, n note) error {
	opts := sandbox.NewSessionOptions()
	opts.Rows, opts.Cols, opts.Env, opts.User = k.Rows, k.Cols, n.Env, n.User
	sandbox.MaxLog(n.MaxLog)(&opts)
	s := newSession(b, n.ID, opts)
	b.mu.Lock()
	b.sessions[n.ID] = s
	b.mu.Unlock()
	if n.Job != "" {
		s.shellOf(k, n)
		return b.attachJob(s, n, k.Skipped)
	}
	return s.attach(ctx, k, n)
}

// shellOf gives a session the shell that a kept process is.
func (s *session) shellOf(k hostapi.Kept, n note) *shell {
	sh := newShell(k.Process.(Process), dialect.New(n.Secret))
	sh.readBytes, sh.jobStart = k.Skipped, n.Head
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sh, s.cwd, s.seq, s.given = sh, n.Dir, (n.Generation+1)*generation, n.Given
	return sh
}

// attach continues a session whose shell is a kept process.
func (s *session) attach(ctx context.Context, k hostapi.Kept, n note) error {
	b, sh := s.box, s.shellOf(k, n)
	c := newCommand("", false)
	busy, err := s.readBacklog(k, c)
	if err != nil {
		return err
	}
	s.storeNote(sh)
	s.learnShell(sh)
	s.mu.Lock()
	if busy {
		s.advanceShellLocked(sh, greeted)
		c.sh, s.cmd = sh, c
		s.advanceLocked(c, lineSent)
		s.advanceLocked(c, outputBegan)
		s.logBeginLocked(c, "command taken over")
		s.readers.Go((&watch{s: s, c: c, sh: sh, tries: c.tries}).run)
	}
	// If it is not busy, the shell is at its prompt or about to be: what the other program sent
	// last may still be on its way.
	seq, _ := s.askShellLocked(sh)
	s.runLocked(sh)
	s.mu.Unlock()
	if busy {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.opts.StartLimit,
		fmt.Errorf("its shell does not come back within %v: %w", b.opts.StartLimit,
			context.DeadlineExceeded))
	defer cancel()
	err = s.awaitAnswer(ctx, sh, seq)
	if err == nil {
		s.discard(sh)
		s.mu.Lock()
		s.lastEnd = time.Now() // of the other program's commands
		// The other program may have ended without a word to its caller.
		if c.result != nil && c.seq > s.given {
			s.keepUnreportedLocked(c, c.result)
		}
		s.mu.Unlock()
		if s.adopt(sh) {
			return nil
		}
		err = s.earlyEndError(sh)
	}
	if errors.Is(err, sandbox.ErrLost) || ctx.Err() != nil {
		return err
	}
	s.mu.Lock()
	s.restarted = true
	s.mu.Unlock()
	return s.restart(sh.status.Code)
}

// readBacklog reads what the host has kept of a session's output. It reports whether a command is
// under way. The command's output goes to c, as does that of the last command that has ended, with
// its number and result.
func (s *session) readBacklog(k hostapi.Kept, c *command) (busy bool, err error) {
	limit := time.AfterFunc(s.box.opts.StartLimit, func() { k.Process.Detach() })
	defer limit.Stop()
	sh := s.sh
	// Unless a marker says otherwise, a command is under way. But if the session went away from
	// here at its prompt, and nothing is missing, it still is there.
	busy = !(s.away && s.shown >= 0 && k.Skipped <= s.shown)
	sh.statusStale = !busy
	begun := busy && k.Skipped > 0 // its Begin marker may no longer be kept
	c.out.SetSize(s.rows, s.cols)
	buf := make([]byte, 32<<10)
	for rest := k.Backlog; rest > 0; {
		n, err := sh.proc.Stdout().Read(buf[:min(rest, int64(len(buf)))])
		rest -= int64(n)
		sh.readBytes += int64(n)
		for chunk := buf[:n]; len(chunk) > 0; {
			var text []byte
			var m *dialect.Marker
			text, m, chunk = sh.scan.Next(chunk)
			if busy {
				s.screen.Write(text)
				c.out.Write(text)
			}
			if m == nil || m.Seq <= s.lastAnswer {
				continue
			}
			if m.Kind == dialect.Begin {
				c.out.Reset()
				c.seq, c.result, begun = m.Seq, nil, true
			} else {
				s.cwd, s.lastAnswer = m.Dir, m.Seq
				if !sh.statusStale {
					s.status = m.Status
				}
				if busy && begun {
					c.result = &sandbox.Result{State: sandbox.Exited, ExitCode: m.Status,
						Cwd: m.Dir}
					if c.seq == unknownSeq {
						c.seq = m.Seq
					}
				}
			}
			busy = m.Kind == dialect.Begin
			sh.statusStale = !busy
		}
		if errors.Is(err, io.EOF) {
			break // the shell has ended: the reader learns of it
		}
		if err != nil {
			return busy, err
		}
	}
	return busy, nil
}

// attachJob makes a job of a session. All output that the host has kept is read again. Before it,
// skipped bytes are no longer kept.
func (b *Box) attachJob(s *session, n note, skipped int64) error {
	c := newCommand(n.Job, true)
	j := &job{box: b, id: n.ID, command: n.Job, session: s, cmd: c,
		spool: output.NewSpool(s.opts.MaxLog), done: make(chan struct{})}
	s.job = j
	b.mu.Lock()
	b.jobs = append(b.jobs, j)
	b.mu.Unlock()
	c.offset = -1
	c.spool = j.spool
	s.mu.Lock()
	// The answer to its hello is read first, and has the number of another program's line. What
	// begins after it is the command.
	s.advanceShellLocked(s.sh, greeted)
	c.sh, s.cmd = s.sh, c
	s.advanceLocked(c, lineSent)
	if skipped > 0 && skipped >= n.Head { // the Begin marker is among those bytes
		s.advanceLocked(c, outputBegan)
		j.spool.Skip(skipped - n.Head)
	}
	s.logBeginLocked(c, "command taken over")
	s.readers.Go((&watch{s: s, c: c, sh: s.sh, tries: c.tries}).run)
	s.runLocked(s.sh)
	go j.run()
	s.mu.Unlock()
	return nil
}
