package shellbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"strings"

	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// start starts a shell in dir and waits for its first prompt. open calls it, and so does the reader of the shell before,
// with that shell's status.
func (s *session) start(ctx context.Context, dir string, status int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.box.opts.StartLimit,
		fmt.Errorf("the shell was not at its prompt within %v (does a startup file wait for something?): %w", s.box.opts.StartLimit, context.DeadlineExceeded))
	defer cancel()
	p, err := s.launch(ctx, dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		p.Close()
		p.Wait()
		return s.err
	}
	s.proc, s.pid, s.typist = p, p.PID(), newTypist(p.Stdin())
	select {
	case <-s.ready:
		s.ready = make(chan struct{})
	default: // Executes wait for it already
	}
	s.startErr = nil
	s.shell = shell{nonce: rand.Text()}
	s.image, s.prompt = "", proc.Call{}
	s.status = status
	s.seq++
	lines := s.shell.initLines(s.seq)
	ready, typist := s.ready, s.typist
	s.readers.Go(typist.run)
	s.readers.Go(func() { s.read(p, typist, scanner{nonce: s.shell.nonce}) })
	s.mu.Unlock()
	typist.write(lines)
	select {
	case <-ready:
	case <-s.gone:
		return s.err
	case <-ctx.Done():
		p.Close()
		return fmt.Errorf("start %s: %w", strings.Join(s.box.shellArgs(), " "), context.Cause(ctx))
	}
	if s.startErr != nil {
		return s.startErr
	}
	s.note()
	s.learn()
	return nil
}

// launch starts the shell's process.
func (s *session) launch(ctx context.Context, dir string) (Process, error) {
	program := Program{
		Args:     s.box.shellArgs(),
		Dir:      dir,
		Env:      s.box.environment(s.id, s.opts.Env),
		Terminal: &Terminal{s.rows, s.cols},
		Spool:    s.job != nil,
	}
	p, err := s.box.host.Start(ctx, program)
	if errors.Is(err, exec.ErrNotFound) && s.box.opts.Shell == nil && s.box.noBash.CompareAndSwap(false, true) {
		program.Args = s.box.shellArgs()
		p, err = s.box.host.Start(ctx, program)
	}
	return p, err
}

// fresh starts a new shell after the last one's end, in the nearest directory that is still there.
func (s *session) fresh(status int) error {
	var err error
	for dir := s.cwd; ; dir = path.Dir(dir) {
		if err = s.start(context.Background(), dir, status); err == nil || dir == "/" || dir == "." || dir == "" {
			return err
		}
		select {
		case <-s.gone:
			return s.err
		default:
		}
	}
}
