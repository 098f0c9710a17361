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

	"github.com/sandshell/sandshell/sandbox"
)

// Attach takes over what another program has left running on the host: its sessions with their directories, variables and unfinished commands,
// and its jobs with their logs. The Box owns the host from then on, as with New. Those of the other program replace Options.Dir and Shell.
//
// A session's unfinished command goes on: Wait, Input and Interrupt work, with as much of its output as the host has kept. Attach ends the Runs that the
// other program had under way.
//
// When Attach fails, sessions and jobs run on as before, and the host stays the caller's, to close or to let go of.
func Attach(ctx context.Context, host Keeper, opts Options) (*Box, error) {
	b := newBox(host, opts)
	kept, err := host.Kept(ctx)
	fail := func(err error) (*Box, error) {
		b.leave(kept)
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
		}
		notes = append(notes, n)
	}
	for i, n := range notes {
		if n.ID == "" {
			continue
		}
		b.counted(n.ID)
		if err := b.adopt(ctx, kept[i], n); err != nil {
			return fail(fmt.Errorf("%s: %w", n.ID, err))
		}
	}
	b.mu.Lock()
	slices.SortFunc(b.jobs, func(a, c *job) int { return number(a.id) - number(c.id) })
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

// leave undoes a failed Attach: it lets go of the host's processes, and ends what the Box has begun with them.
func (b *Box) leave(kept []Kept) {
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
		b.control.close()
	}
}

// counted has later ids of sessions and jobs go on behind this one.
func (b *Box) counted(id string) {
	if kind, _, ok := strings.Cut(id, "-"); ok {
		b.count[kind] = max(b.count[kind], number(id))
	}
}

// number returns the number in an id like session-3.
func number(id string) int {
	_, digits, _ := strings.Cut(id, "-")
	n, _ := strconv.Atoi(digits)
	return n
}

// adopt makes a session, or a job, of a kept process.
func (b *Box) adopt(ctx context.Context, k Kept, n note) error {
	opts := sandbox.NewSessionOptions()
	opts.Rows, opts.Cols, opts.Env = k.Rows, k.Cols, n.Env
	s := newSession(b, n.ID, opts)
	s.proc, s.pid, s.typist = k.Process, k.Process.PID(), newTypist(k.Process.Stdin())
	s.shell = shell{nonce: n.Nonce, dialect: n.Dialect}
	s.cwd = n.Dir
	b.mu.Lock()
	b.sessions[n.ID] = s
	b.mu.Unlock()
	if n.Job != "" {
		return b.adoptJob(s, n)
	}
	past, err := s.recall(k)
	if err != nil {
		return err
	}
	s.readers.Go(s.typist.run)
	if past.running {
		s.mu.Lock()
		s.seq, s.anySeq = past.seq, past.seq == 0
		c := newCommand("", false)
		c.typed = true
		c.begin()
		c.wrote(past.text)
		s.cmd = c
		close(s.ready)
		s.mu.Unlock()
		s.readers.Go(func() { s.read(k.Process, s.typist, past.scan) })
		return nil
	}
	// The shell is at its prompt or about to be: what the other program typed last may still be on its way. The sequence number used here is far from
	// those of later commands. The kill character (^U) takes back an unfinished line of the other program.
	s.mu.Lock()
	s.seq = past.seq + 1000
	ready := s.ready
	lines := append([]byte{0x15}, s.shell.initLines(s.seq)...)
	s.mu.Unlock()
	s.readers.Go(func() { s.read(k.Process, s.typist, past.scan) })
	s.typist.write(lines)
	ctx, cancel := context.WithTimeout(ctx, b.opts.StartLimit)
	defer cancel()
	select {
	case <-ready:
		s.learn()
		return nil
	case <-s.gone:
		return s.over()
	case <-ctx.Done():
		return fmt.Errorf("its shell does not come back: %w", ctx.Err())
	}
}

// A past is what a session's output tells of it.
type past struct {
	running bool   // a command is under way
	seq     int    // of the last command in the output; 0: there is none
	text    []byte // what the host has kept of the output of the command under way
	scan    scanner
}

// recall reads what the host has kept of a session's output.
func (s *session) recall(k Kept) (past, error) {
	p := past{running: true, scan: scanner{nonce: s.shell.nonce}}
	limit := time.AfterFunc(s.box.opts.StartLimit, func() { k.Process.Detach() })
	defer limit.Stop()
	buf := make([]byte, 32<<10)
	for rest := k.Backlog; rest > 0; {
		n, err := k.Process.Stdout().Read(buf[:min(rest, int64(len(buf)))])
		rest -= int64(n)
		for chunk := buf[:n]; len(chunk) > 0; {
			var text []byte
			var m *marker
			text, m, chunk = p.scan.next(chunk)
			if p.running {
				s.screen.Write(text)
				p.text = append(p.text, text...)
			}
			switch {
			case m == nil || m.kind == 'D' && (m.pid != s.pid || m.seq == helloSeq):
			case m.kind == 'C':
				p.running, p.seq, p.text = true, m.seq, nil
			default:
				p.running, p.seq, p.text = false, m.seq, nil
				s.status, s.cwd = m.status, m.cwd
			}
		}
		if errors.Is(err, io.EOF) {
			break // the shell has ended: the reader learns of it
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// adoptJob makes a job of a session. All that it ever printed is read again.
func (b *Box) adoptJob(s *session, n note) error {
	j := &job{box: b, id: n.ID, command: n.Job, s: s, done: make(chan struct{})}
	s.job = j
	var err error
	if j.spool, err = newSpool(); err != nil {
		return err
	}
	b.mu.Lock()
	b.jobs = append(b.jobs, j)
	b.mu.Unlock()
	c := newCommand(n.Job, true)
	c.typed = true
	c.tee.set(j.spool)
	s.mu.Lock()
	s.seq = n.Seq + 1
	s.cmd = c
	close(s.ready)
	s.mu.Unlock()
	s.readers.Go(s.typist.run)
	proc, typist := s.proc, s.typist
	s.readers.Go(func() { s.read(proc, typist, scanner{nonce: n.Nonce}) })
	go j.run(func() (*sandbox.Result, error) {
		return s.await(context.Background(), c, sandbox.ExecOptions{Tee: j.spool, MaxOutput: 1}, onEndLeave, func() {})
	})
	return nil
}

// Session returns the open session of that id.
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
	slices.SortFunc(list, func(a, c *session) int { return number(a.id) - number(c.id) }) // main has none: 0
	sessions := make([]sandbox.Session, len(list))
	for i, s := range list {
		sessions[i] = s
	}
	return sessions
}
