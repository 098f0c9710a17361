package shellbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// A session is a shell on a terminal. For each shell one goroutine reads the terminal (see read). It alone handles markers and the
// shell's end.
type session struct {
	box  *Box
	id   string
	opts sandbox.SessionOptions
	job  *job // the job that owns the session; nil if none does

	readers sync.WaitGroup
	gone    chan struct{} // closed when err is set

	mu         sync.Mutex
	err        error // ErrClosed or ErrLost: the session is over
	proc       Process
	typist     *typist
	shell      shell
	pid        int       // of the shell
	image      string    // the shell's, see proc.Process: another one tells that exec has replaced the shell; "": unknown
	prompt     proc.Call // the shell's read at its prompt; the zero Call: unknown
	seq        int       // of the last command typed
	status     int       // $?
	cwd        string
	background int           // $! at the last command's begin
	ready      chan struct{} // closed when the shell is at its first prompt
	startErr   error         // why the shell never gets there
	killed     bool          // the last command was killed
	anySeq     bool          // after Attach: the number of the command under way is not known
	restarted  bool          // the shell ended while no command was under way: the next Result says so
	rows, cols int
	screen     *terminal.Tail
	cmd        *command // the unfinished one
	unseen     *command // the last one, if it ended while no call was waiting for it: Wait tells
}

// screenTail is how much raw output Screen is rendered from.
const screenTail = 256 << 10

func newSession(b *Box, id string, opts sandbox.SessionOptions) *session {
	return &session{
		box: b, id: id, opts: opts, rows: opts.Rows, cols: opts.Cols,
		screen: terminal.NewTail(screenTail),
		gone:   make(chan struct{}),
		ready:  make(chan struct{}),
	}
}

// ID returns the session's id.
func (s *session) ID() string { return s.id }

// read reads the terminal until the shell's end.
func (s *session) read(proc Process, typist *typist, scan scanner) {
	eof := make(chan struct{})
	exited := make(chan struct{})
	var status Status
	var waitErr error
	s.readers.Go(func() {
		status, waitErr = proc.Wait()
		// After the shell's end a background process may keep the terminal open. Do not wait for it: what the shell printed is
		// there by now, or comes within moments.
		close(exited)
		select {
		case <-eof:
		case <-time.After(100 * time.Millisecond):
		}
		proc.Close()
	})
	buf := make([]byte, 32<<10)
	for {
		n, err := proc.Stdout().Read(buf)
		for chunk := buf[:n]; len(chunk) > 0; {
			var text []byte
			var m *marker
			text, m, chunk = scan.next(chunk)
			if len(text) > 0 {
				s.text(text)
			}
			if m != nil {
				s.marker(m)
			}
		}
		if err != nil {
			break
		}
	}
	s.text(scan.flush())
	close(eof)
	typist.stop()
	select {
	case <-exited:
	case <-time.After(2 * time.Second): // nobody has the terminal open, yet the shell lives: it is of no use
		proc.Close()
		<-exited
	}
	s.shellEnded(status, waitErr)
}

// text takes output that holds no marker.
func (s *session) text(text []byte) {
	s.mu.Lock()
	c := s.cmd
	if c == nil || !c.typed || len(text) == 0 {
		s.mu.Unlock()
		return
	}
	if !c.started {
		c.echoed(text)
		s.mu.Unlock()
		return
	}
	s.screen.Write(text)
	c.wrote(text)
	tee := c.tee
	s.mu.Unlock()
	tee.write(text)
}

func (s *session) marker(m *marker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cmd
	starting := false
	select {
	case <-s.ready:
	default:
		starting = true
	}
	switch {
	case m.kind == 'D' && m.seq == helloSeq: // from the lines that init a shell
		s.shell.dialect, s.pid = dialect(m.status), m.pid
	case s.anySeq && m.kind == 'D' && m.pid == s.pid:
		s.seq, s.anySeq = m.seq, false
		s.status, s.cwd = m.status, m.cwd
		s.ended(c, &sandbox.Result{State: sandbox.Exited, ExitCode: m.status, Cwd: m.cwd})
	case m.seq != s.seq:
		if m.kind == 'D' && c != nil && c.again {
			s.again(c)
		}
	case starting:
		if m.kind == 'D' {
			s.cwd = m.cwd
			close(s.ready)
		}
	case m.kind == 'C':
		if c != nil && !c.started {
			s.background = m.background
			c.begin()
		}
	case m.pid != s.pid: // a nested shell's
	case c != nil && c.typed:
		if !c.started {
			c.unmarked()
		}
		s.status, s.cwd = m.status, m.cwd
		if c.asked { // this may be another shell (exec bash): learn its read before the next command
			c.typed = false
			s.readers.Go(func() {
				s.learn()
				s.mu.Lock()
				defer s.mu.Unlock()
				s.ended(c, &sandbox.Result{State: sandbox.Exited, ExitCode: m.status, Cwd: m.cwd})
			})
			return
		}
		s.ended(c, &sandbox.Result{State: sandbox.Exited, ExitCode: m.status, Cwd: m.cwd})
	}
}

// shellEnded reports the end of the shell to the command under way, and starts a fresh one.
func (s *session) shellEnded(status Status, err error) {
	select {
	case <-s.gone:
		return
	default:
	}
	s.mu.Lock()
	unready := false
	select {
	case <-s.ready:
	default:
		unready = true
	}
	c := s.cmd
	if err == nil && unready {
		s.startErr = fmt.Errorf("%s ended with status %d before its first prompt", strings.Join(s.box.shellArgs(), " "), status.Code)
		close(s.ready)
		s.mu.Unlock()
		return
	}
	oneShot := c != nil && c.once
	if c != nil {
		c.typed = false // what the fresh shell prints is not the command's
	} else {
		s.restarted = true
	}
	s.ready = make(chan struct{}) // for an Execute that comes now: it runs in the fresh shell
	s.mu.Unlock()
	if err != nil {
		s.lost(err)
		return
	}
	s.box.log.Info("shell ended", "session", s.id, "status", status.Code)
	r := &sandbox.Result{State: sandbox.Exited, ExitCode: status.Code, Restarted: true}
	if oneShot {
		r.Restarted = false
	} else if err := s.fresh(status.Code); err != nil {
		if !errors.Is(err, sandbox.ErrLost) && !errors.Is(err, sandbox.ErrClosed) {
			err = &sandbox.LostError{Box: s.box.String(), Reason: "the shell ended and no other could be started", Err: err}
		}
		s.fail(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Cwd = s.cwd
	if c != nil {
		s.ended(c, r)
	}
}

// ended ends the command under way; s.mu is held.
func (s *session) ended(c *command, r *sandbox.Result) {
	s.cmd = nil
	if c.calls == 0 {
		s.unseen = c
	}
	c.end(r)
}

// lost ends the session because its process ended without a status: the host is gone.
func (s *session) lost(err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	select {
	case <-s.gone:
		return
	default:
	}
	if why := s.box.host.Lost(ctx); why != nil {
		err = why
	} else {
		err = &sandbox.LostError{Box: s.box.String(), Reason: "the shell's connection ended", Err: err}
	}
	s.fail(err)
}

// spawn runs f in a goroutine that release waits for, unless the session is over.
func (s *session) spawn(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.readers.Go(f)
	}
}

// fail ends the session for all its callers.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.gone)
	}
}

func (s *session) shellPID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}

// over returns why the session is over, nil if it is not.
func (s *session) over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the session with all processes that it has started.
func (s *session) Close() error {
	s.box.mu.Lock()
	_, open := s.box.sessions[s.id]
	delete(s.box.sessions, s.id)
	s.box.mu.Unlock()
	s.fail(sandbox.ErrClosed)
	if open {
		s.box.killMarked(s.box.markOf(s.id))
	}
	s.release()
	return nil
}

// hangup closes the terminal: the shell and its jobs get SIGHUP, as with a terminal's window. The session is over.
func (s *session) hangup() {
	s.box.mu.Lock()
	delete(s.box.sessions, s.id)
	s.box.mu.Unlock()
	s.fail(sandbox.ErrClosed)
	s.release()
}

// release lets go of the terminal and waits for the session's goroutines.
func (s *session) release() {
	s.mu.Lock()
	proc := s.proc
	s.mu.Unlock()
	if proc != nil {
		proc.Close()
	}
	s.readers.Wait()
}

// Screen implements sandbox.Session.
func (s *session) Screen(ctx context.Context) (*sandbox.Screen, error) {
	s.mu.Lock()
	err, raw, rows, cols := s.err, s.screen.Bytes(), s.rows, s.cols
	s.mu.Unlock()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("screen of %s: %w", s.id, err)
	}
	lines, row, col := terminal.Render(raw, rows, cols)
	return &sandbox.Screen{Lines: lines, Row: row, Col: col}, nil
}

// Resize implements sandbox.Session.
func (s *session) Resize(ctx context.Context, rows, cols int) error {
	if rows <= 0 || cols <= 0 || rows > 10000 || cols > 10000 {
		return fmt.Errorf("resize %s to %d rows and %d columns: give 1 to 10000 each", s.id, rows, cols)
	}
	s.mu.Lock()
	err, proc := s.err, s.proc
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		s.rows, s.cols = rows, cols
	}
	s.mu.Unlock()
	if err == nil {
		err = proc.Resize(rows, cols)
	}
	if err != nil {
		return fmt.Errorf("resize %s: %w", s.id, err)
	}
	return nil
}
