package shellbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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
// output as the host has kept. Attach ends the Runs that the other program had under way.
//
// If Attach fails, sessions and jobs run on, and the caller still owns the host, to close it or to
// let go of it.
func Attach(ctx context.Context, host Host, opts Options) (*Box, error) {
	keeper, ok := host.(hostapi.Keeper)
	if !ok {
		return nil, fmt.Errorf("attach: %w: the host's programs do not outlive a connection",
			errors.ErrUnsupported)
	}
	b := newBox(host, opts)
	kept, err := keeper.Kept(ctx)
	fail := func(err error) (*Box, error) {
		b.abandon(kept)
		return nil, fmt.Errorf("attach: %w", err)
	}
	if err != nil {
		return fail(err)
	}
	var notes []note
	for i := range kept {
		var n note
		if kept[i].Rows <= 0 || json.Unmarshal([]byte(kept[i].Note), &n) != nil || n.ID == "" {
			b.killTree(kept[i].Process.PID())
			kept[i].Process.Close()
			n = note{}
		} else {
			b.mark, b.opts.Dir, b.opts.Shell = n.Mark, n.Dir, n.Shell
			if n.ID == "main" {
				b.added = n.Added
			}
		}
		notes = append(notes, n)
	}
	for i, n := range notes {
		if n.ID == "" {
			continue
		}
		b.reserveID(n.ID)
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

// reserveID makes later ids of sessions and jobs greater than id.
func (b *Box) reserveID(id string) {
	if kind, _, ok := strings.Cut(id, "-"); ok {
		b.count[kind] = max(b.count[kind], numberOf(id))
	}
}

// numberOf returns the number in an id such as session-3.
func numberOf(id string) int {
	_, digits, _ := strings.Cut(id, "-")
	n, _ := strconv.Atoi(digits)
	return n
}

// attachSession makes a session, or a job, of a kept process.
func (b *Box) attachSession(ctx context.Context, k hostapi.Kept, n note) error {
	opts := sandbox.NewSessionOptions()
	opts.Rows, opts.Cols, opts.Env, opts.User = k.Rows, k.Cols, n.Env, n.User
	sandbox.MaxLog(n.MaxLog)(&opts)
	s := newSession(b, n.ID, opts)
	sh := newShell(k.Process.(Process), n.Secret)
	sh.readBytes, sh.jobStart = k.Skipped, n.Head
	s.sh, s.cwd, s.seq = sh, n.Dir, (n.Generation+1)*generation
	b.mu.Lock()
	b.sessions[n.ID] = s
	b.mu.Unlock()
	if n.Job != "" {
		return b.attachJob(s, n, k.Skipped)
	}
	c := newCommand("", false)
	busy, err := s.readBacklog(k, c)
	if err != nil {
		return err
	}
	s.note(sh)
	s.learn(sh)
	s.mu.Lock()
	s.ready = busy
	if busy {
		c.sh, s.cmd = sh, c
		s.advanceLocked(c, lineSent)
		s.advanceLocked(c, outputBegan)
		s.logBeginLocked(c, "command taken over")
		s.readers.Go((&watch{s: s, c: c, sh: sh, tries: c.tries}).run)
		sh.commands.write(sh.dialect.Ask(s.nextSeqLocked()))
	}
	s.runLocked(sh)
	seq := s.nextSeqLocked()
	s.mu.Unlock()
	if busy {
		return nil
	}
	// The shell is at its prompt or about to be: what the other program sent last may still be on
	// its way.
	sh.commands.write(sh.dialect.Ask(seq))
	ctx, cancel := context.WithTimeoutCause(ctx, b.opts.StartLimit,
		fmt.Errorf("its shell does not come back within %v: %w", b.opts.StartLimit,
			context.DeadlineExceeded))
	defer cancel()
	err = s.awaitAnswer(ctx, sh, seq)
	if err == nil {
		s.discard(sh)
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
// under way. The command's output goes to c.
func (s *session) readBacklog(k hostapi.Kept, c *command) (busy bool, err error) {
	limit := time.AfterFunc(s.box.opts.StartLimit, func() { k.Process.Detach() })
	defer limit.Stop()
	busy, s.seqUnknown = true, true // unless a marker says otherwise
	buf := make([]byte, 32<<10)
	for rest := k.Backlog; rest > 0; {
		n, err := s.sh.proc.Stdout().Read(buf[:min(rest, int64(len(buf)))])
		rest -= int64(n)
		for chunk := buf[:n]; len(chunk) > 0; {
			var text []byte
			var m *dialect.Marker
			text, m, chunk = s.sh.scan.Next(chunk)
			if busy {
				s.screen.Write(text)
				c.out.Write(text)
			}
			if m == nil || m.Seq <= s.lastAnswer {
				continue
			}
			s.seqUnknown, c.seq, busy = false, m.Seq, m.Kind == dialect.Begin
			c.out.Reset()
			if m.Kind == dialect.End {
				s.cwd, s.lastAnswer = m.Dir, m.Seq
				if !s.statusStale {
					s.status = m.Status
				}
			}
			s.statusStale = m.Kind == dialect.End
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

// attachJob makes a job of a session. All output that the host has kept is read again. So many
// bytes of it were skipped.
func (b *Box) attachJob(s *session, n note, skipped int64) error {
	j := &job{box: b, id: n.ID, command: n.Job, s: s, spool: output.NewSpool(s.opts.MaxLog),
		done: make(chan struct{})}
	s.job = j
	b.mu.Lock()
	b.jobs = append(b.jobs, j)
	b.mu.Unlock()
	c := newCommand(n.Job, true)
	c.offset = -1
	c.spool = j.spool
	s.mu.Lock()
	// Its hello, which is read first, has a number of before: whatever begins after it is the
	// command.
	c.sh, s.cmd, s.ready, s.seqUnknown = s.sh, c, true, true
	s.advanceLocked(c, lineSent)
	if skipped > 0 && skipped >= n.Head { // the marker of its begin is among them
		s.advanceLocked(c, outputBegan)
		j.spool.Skip(skipped - n.Head)
	}
	s.logBeginLocked(c, "command taken over")
	s.runLocked(s.sh)
	go j.run(s.newCallLocked(c, sandbox.ExecOptions{MaxOutput: 1}))
	s.mu.Unlock()
	return nil
}

// Session returns the open session of that id. The ids of jobs are not found.
func (b *Box) Session(id string) (sandbox.Session, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.sessions[id]
	if !ok || s.job != nil {
		return nil, false
	}
	return s, true
}

// Sessions returns the open sessions, the main one first.
func (b *Box) Sessions() []sandbox.Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*session
	for _, s := range b.sessions {
		if s.job == nil {
			list = append(list, s)
		}
	}
	// main has none: 0
	slices.SortFunc(list, func(a, c *session) int { return numberOf(a.id) - numberOf(c.id) })
	sessions := make([]sandbox.Session, len(list))
	for i, s := range list {
		sessions[i] = s
	}
	return sessions
}
