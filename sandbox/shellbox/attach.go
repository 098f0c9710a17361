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

// A Keeper is a Host whose processes belong to the host, not to the connection to it: after a Close that follows Detach, or after the end of
// this program, they run on, and another program can Attach to them. Its Processes have a method
//
//	SetNote(note string) error
//
// which has the host keep a text with the process, for Kept.
type Keeper interface {
	Host
	// Kept returns what runs on the host, and what has ended and has not been closed.
	Kept(ctx context.Context) ([]Kept, error)
	// Detach makes Close leave everything running.
	Detach()
}

// A Kept is a process that was started by another program.
type Kept struct {
	Process    Process
	Note       string // the last one
	Rows, Cols int    // of its terminal; 0: none
	Backlog    int64  // so many bytes of its output are there to be read already
}

// A note is what a session tells a program that will Attach to it.
type note struct {
	Mark    string   // the box's
	Dir     string   // Options.Dir
	Shell   []string // Options.Shell
	ID      string
	Job     string `json:",omitempty"` // its command, if it is one's
	Env     []string
	Nonce   string
	Dialect dialect
	Seq     int // of the first prompt
}

// note has the host remember the session.
func (s *session) note() {
	noter, ok := s.proc.(interface{ SetNote(string) error })
	if !ok {
		return
	}
	s.mu.Lock()
	n := note{
		Mark: s.box.mark, Dir: s.box.opts.Dir, Shell: s.box.opts.Shell, ID: s.id, Env: s.opts.Env,
		Nonce: s.shell.nonce, Dialect: s.shell.dialect, Seq: s.seq,
	}
	s.mu.Unlock()
	if s.job != nil {
		n.Job = s.job.command
	}
	text, err := json.Marshal(n)
	if err == nil {
		err = noter.SetNote(string(text))
	}
	if err != nil {
		s.box.log.Warn("the session will not be found by another program", "session", s.id, "error", err)
	}
}

// Attach takes over what another program has left running on the host: its sessions, with their directories, variables and unfinished commands,
// and its jobs with their logs. The Box owns the host from then on, as with New; Options.Dir and Shell are those of the other program.
//
// A session's unfinished command goes on: Wait, Input and Interrupt work, with as much of its output as the host has kept. Runs that the other program
// had under way are ended.
func Attach(ctx context.Context, host Keeper, opts Options) (*Box, error) {
	b := newBox(host, opts)
	fail := func(err error) (*Box, error) {
		host.Detach() // nobody has asked for an end
		b.closed, b.detached = true, true
		b.end()
		return nil, fmt.Errorf("attach: %w", err)
	}
	kept, err := host.Kept(ctx)
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

// counted has the ids of sessions and jobs to come go on behind this one.
func (b *Box) counted(id string) {
	if kind, _, ok := strings.Cut(id, "-"); ok {
		b.count[kind] = max(b.count[kind], number(id))
	}
}

// number is that of an id like session-3.
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
	// At its prompt, or about to be: what the other program typed last may still be on its way. Its number is far from those to come. A line
	// that it has not ended is taken back by the kill character (^U).
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
	seq     int    // of the last command that is spoken of; 0: none is
	text    []byte // what the command under way has printed, as far as it is there
	scan    scanner
}

// recall reads what is there of a session's output.
func (s *session) recall(k Kept) (past, error) {
	p := past{running: true, scan: scanner{nonce: s.shell.nonce}}
	limit := time.AfterFunc(s.box.opts.StartLimit, func() { k.Process.Close() })
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

// Detach lets go of the box and leaves everything in it running, for another program to Attach to. The Box is closed after it. It returns
// errors.ErrUnsupported where nothing would be left running.
func (b *Box) Detach() error {
	keeper, ok := b.host.(Keeper)
	if !ok {
		return fmt.Errorf("detach from %s: %w", b, errors.ErrUnsupported)
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return fmt.Errorf("detach from %s: %w", b, sandbox.ErrClosed)
	}
	b.detached = true
	b.mu.Unlock()
	keeper.Detach()
	return b.Close()
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
