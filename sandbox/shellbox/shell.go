package shellbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A shell is one process of a session's shell. Its commands come on a pipe, and what programs read is its terminal.
type shell struct {
	proc     Process
	pid      int
	dialect  dialect
	commands *typist // on the pipe
	keys     *typist // on the terminal
	scan     scanner
	answer   chan struct{} // closed, and made anew, with each D marker
	over     chan struct{} // closed when the shell has ended,
	exit     int           // with this status

	pipe  string // what the shell reads when it waits for a command, see proc.Look; "": unknown
	image string // its program's, see proc.Look; "": unknown

	takeover *takeover // what another interactive shell, which exec had put in its place, has left
}

func newShell(p Process, secret string) *shell {
	sh := &shell{
		proc: p, pid: p.PID(), dialect: dialect{secret: secret, tty: "/dev/tty"},
		commands: newTypist(p.Commands(), commandPiece), keys: newTypist(p.Stdin(), keysPiece),
		answer: make(chan struct{}), over: make(chan struct{}),
	}
	sh.scan = scanner{nonce: sh.dialect.nonce}
	return sh
}

// start starts a shell in dir and waits until it can take commands. open calls it, and so does the reader of the shell before, with that shell's status.
func (s *session) start(ctx context.Context, dir string, status int) error {
	name := strings.Join(s.box.shellArgs(), " ")
	ctx, cancel := context.WithTimeoutCause(ctx, s.box.opts.StartLimit,
		fmt.Errorf("%s was not at its prompt within %v (does a startup file wait for something?): %w", name, s.box.opts.StartLimit, context.DeadlineExceeded))
	defer cancel()
	s.mu.Lock()
	rows, cols := s.rows, s.cols
	s.mu.Unlock()
	p, err := s.launch(ctx, dir, rows, cols)
	if err != nil {
		return causeOf(ctx, err)
	}
	sh := newShell(p, rand.Text())
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		p.Close()
		p.Wait()
		return s.err
	}
	s.sh, s.up, s.status = sh, false, status
	resized := rows != s.rows || cols != s.cols
	rows, cols = s.rows, s.cols
	seq := s.next()
	s.run(sh)
	s.mu.Unlock()
	if resized {
		p.Resize(rows, cols)
	}
	s.note(sh)
	sh.commands.write(sh.dialect.hello(seq))
	if err := s.answers(ctx, sh, seq); err != nil {
		p.Close()
		return fmt.Errorf("start %s: %w", name, err)
	}
	s.learn(sh)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status // not hello's
	s.up = true
	s.send()
	return nil
}

// causeOf returns err, or why ctx has ended if that is the reason.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%v)", cause, err)
	}
	return err
}

// launch starts the shell's process.
func (s *session) launch(ctx context.Context, dir string, rows, cols int) (Process, error) {
	program := Program{
		Args:     s.box.shellArgs(),
		Dir:      dir,
		Env:      s.box.environment(s.id, s.opts.Env),
		User:     s.opts.User,
		Terminal: &Terminal{Rows: rows, Cols: cols, Commands: true},
		Spool:    s.job != nil,
	}
	p, err := s.box.host.Start(ctx, program)
	if errors.Is(err, exec.ErrNotFound) && s.box.opts.Shell == nil && s.box.noBash.CompareAndSwap(false, true) {
		program.Args = s.box.shellArgs()
		p, err = s.box.host.Start(ctx, program)
	}
	return p, err
}

// run starts the goroutines of a shell; s.mu is held.
func (s *session) run(sh *shell) {
	s.readers.Go(sh.commands.run)
	s.readers.Go(sh.keys.run)
	s.readers.Go(func() { s.read(sh) })
}

// answers waits until the shell has answered line seq.
func (s *session) answers(ctx context.Context, sh *shell, seq int) error {
	for {
		s.mu.Lock()
		answered, answer := s.answered, sh.answer
		s.mu.Unlock()
		if answered >= seq {
			return nil
		}
		select {
		case <-answer:
		case <-sh.over:
			return fmt.Errorf("it ended with status %d before its first prompt", sh.exit)
		case <-s.gone:
			return s.over()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// learn finds out the terminal's name, and what the shell reads when it waits for a command. The shell does so a few microseconds after it has answered; on
// a busy machine, later.
func (s *session) learn(sh *shell) {
	for pause, begin := 100*time.Microsecond, time.Now(); time.Since(begin) < 2*time.Second; pause = min(2*pause, 50*time.Millisecond) {
		l, err := s.box.look(sh.proc)
		s.mu.Lock()
		sh.pipe, sh.image = l.Reads, l.Image
		if major := l.TTY >> 8 & 0xfff; major >= 136 && major <= 143 { // UNIX98_PTY_SLAVE_MAJOR and the seven behind it
			sh.dialect.tty = "/dev/pts/" + strconv.Itoa(l.TTY&0xff|l.TTY>>12&0xfff00)
		}
		s.mu.Unlock()
		if err != nil || l.Gone || l.Reads != "" || l.Hidden || l.TTY == 0 {
			return
		}
		select {
		case <-s.gone:
			return
		case <-time.After(pause):
		}
	}
}

// confirmEvery is after which time a shell is asked again that has not answered although it waits for a line; four times as long each further time, as a
// busy machine may have read the answer, and not got round to it.
const confirmEvery = 50 * time.Millisecond

// confirm returns when the shell has answered a question: what had interrupted it before has passed. A shell that does not answer is replaced.
func (s *session) confirm(sh *shell) {
	for try := 1; ; try++ {
		s.mu.Lock()
		seq := s.next()
		if try == maxTries {
			sh.commands.write(repair)
		}
		sh.commands.write(sh.dialect.ask(seq))
		s.mu.Unlock()
		asked := time.Now()
		for idle := 0; idle < 2; idle++ { // an interrupt may have made the shell drop the line
			ctx, cancel := context.WithTimeout(context.Background(), confirmEvery<<(2*(try-1)))
			err := s.answers(ctx, sh, seq)
			cancel()
			if err == nil || !errors.Is(err, context.DeadlineExceeded) {
				return
			}
			if l, err := s.box.look(sh.proc); err != nil || sh.pipe == "" || l.Reads != sh.pipe {
				idle = -1 // it is at work, with a prompt command perhaps
			} else if (s.box.settle(sh.proc) || !sh.commands.idle()) && time.Since(asked) < surely {
				idle = -1 // the question or the answer is on its way: the machine is busy
			}
		}
		if try == maxTries {
			s.mu.Lock()
			s.replace(sh)
			s.mu.Unlock()
			return
		}
	}
}

// read reads the terminal until the shell's end.
func (s *session) read(sh *shell) {
	eof := make(chan struct{})
	exited := make(chan struct{})
	var status Status
	var waitErr error
	var got progress
	s.readers.Go(func() {
		status, waitErr = sh.proc.Wait()
		close(exited)
		// After the shell's end a background process may keep the terminal open. Do not wait for it: what the shell has printed is there by now.
		s.untilQuiet(sh, eof, &got)
		sh.proc.Close()
	})
	buf := make([]byte, 32<<10)
	for {
		n, err := sh.proc.Stdout().Read(buf)
		got.begin(n)
		s.take(sh, buf[:n])
		got.end()
		if err != nil {
			break
		}
	}
	s.text(sh, sh.scan.flush())
	close(eof)
	sh.commands.stop()
	sh.keys.stop()
	select {
	case <-exited:
	case <-time.After(2 * time.Second): // nobody has the terminal open, yet the shell lives: it is of no use
		sh.proc.Close()
		<-exited
	}
	sh.exit = status.Code
	close(sh.over)
	s.shellEnded(sh, status, waitErr)
}

// take takes what the terminal shows.
func (s *session) take(sh *shell, chunk []byte) {
	for len(chunk) > 0 {
		var text []byte
		var m *marker
		text, m, chunk = sh.scan.next(chunk)
		if len(text) > 0 {
			s.text(sh, text)
		}
		if m != nil {
			s.marker(sh, m)
		}
	}
}

// untilQuiet returns at the terminal's end, or when all that has been printed so far has been read.
func (s *session) untilQuiet(sh *shell, eof chan struct{}, got *progress) {
	for last := int64(-1); ; {
		select {
		case <-eof:
			return
		case <-s.gone:
			return
		case <-time.After(20 * time.Millisecond):
		}
		s.box.settle(sh.proc)
		n, busy := got.now()
		if !busy && n == last {
			return
		}
		last = n
	}
}

// shellEnded reports the end of the shell to the command under way, and starts a fresh one.
func (s *session) shellEnded(sh *shell, status Status, err error) {
	s.mu.Lock()
	if s.err != nil || err == nil && !s.up { // start reports it
		s.mu.Unlock()
		return
	}
	dead := s.cutOff()
	s.up = false
	if t := sh.takeover; t != nil {
		status.Code, s.opts.Env = 0, t.env
		if t.dir != "" {
			s.cwd = t.dir
		}
	}
	s.mu.Unlock()
	if err != nil {
		s.lost(err)
		return
	}
	s.box.log.Info("shell ended", "session", s.id, "status", status.Code)
	r := &sandbox.Result{State: sandbox.Exited, ExitCode: status.Code}
	if dead != nil && dead.once {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.Cwd = s.cwd
		s.ended(dead, r)
		return
	}
	if err := s.fresh(status.Code); err != nil {
		if !errors.Is(err, sandbox.ErrLost) && !errors.Is(err, sandbox.ErrClosed) {
			err = &sandbox.LostError{Box: s.box.String(), Reason: "the shell ended and no other could be started", Cause: sandbox.LostEnded, Err: err}
		}
		s.fail(err)
		return
	}
	if dead == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Restarted, r.Cwd = true, s.cwd
	if dead.killing {
		s.ends(dead, r) // kill ends it
		return
	}
	s.ended(dead, r)
}

// cutOff returns the command that ends with the shell, if there is one; s.mu is held. One that the shell has not taken is left for the next shell, but not
// a job's: its shell was to end with it.
func (s *session) cutOff() *command {
	c := s.cmd
	switch {
	case c != nil && c.once:
		return c
	case c == nil, c.phase == queued:
		s.restarted = s.restarted || s.up
	case c.phase == ending:
		s.restarted = true
	case c.phase == sent && c.tries < maxTries && !c.killing && !c.keyed: // after the interrupt key, it may have run: see said
		c.phase, s.restarted = queued, true
	default:
		return c
	}
	return nil
}

// fresh starts a new shell after the last one's end, in the nearest directory that is still there.
func (s *session) fresh(status int) error {
	for dir := s.cwd; ; dir = path.Dir(dir) {
		err := s.start(context.Background(), dir, status)
		if err == nil || dir == "/" || dir == "." || dir == "" {
			return err
		}
		if s.over() != nil {
			return s.over()
		}
	}
}

// lost ends the session because its process ended without a status: the host is gone.
func (s *session) lost(err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.over() != nil {
		return
	}
	if why := s.box.host.Lost(ctx); why != nil {
		err = why
	} else {
		err = &sandbox.LostError{Box: s.box.String(), Reason: "the shell's connection ended", Err: err}
	}
	s.fail(err)
}
