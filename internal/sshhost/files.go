package sshhost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sftpfiles"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

var _ shellbox.FileHost = (*Host)(nil)

// versionLimit bounds the time until the subsystem sends its version. If it takes longer, it does
// not work: a startup file prints or reads before it, or its program is missing.
const versionLimit = 3 * time.Second

// OpenFiles implements shellbox.FileHost with the server's subsystem sftp. If the server has none,
// or it does not work, the error is errors.ErrUnsupported. This side cannot kill a file server that
// hangs. Such a file server keeps its session until it reads the end of its input.
func (h *Host) OpenFiles(ctx context.Context, user string) (shellbox.FileClient, error) {
	if user != "" {
		return nil, errors.ErrUnsupported
	}
	if none := h.noFiles.Load(); none != nil {
		return nil, *none
	}
	type answer struct {
		proc *process
		err  error
	}
	answers := make(chan answer, 1)
	if !h.starts.Run(func() {
		proc, err := h.startFiles(ctx)
		answers <- answer{proc, err}
	}) {
		return nil, sandbox.ErrClosed
	}
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		h.starts.Run(func() {
			if late := <-answers; late.proc != nil {
				late.proc.Close()
			}
		})
		return nil, ctxerr.Of(ctx)
	}
	if a.err != nil {
		return nil, h.explain(ctx, a.err)
	}
	limited, cancel := ctxerr.WithLimit(ctx, versionLimit,
		fmt.Errorf("it sent no version within %v", versionLimit))
	defer cancel()
	client, err := sftpfiles.New(limited, sftpfiles.Server{
		In: a.proc.Stdin(), Out: a.proc.Out, Home: lastOf("HOME", h.env),
		End: func() { a.proc.Close() },
	})
	if err == nil {
		return client, nil
	}
	err = h.explain(ctx, fmt.Errorf("reach the server's subsystem sftp: %w", err))
	gone := errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrClosed)
	if ctx.Err() == nil && !gone {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		h.noFiles.Store(&err)
	}
	return nil, err
}

// startFiles asks the server for its subsystem sftp.
func (h *Host) startFiles(ctx context.Context) (*process, error) {
	s, err := h.session(ctx)
	if err != nil {
		return nil, err
	}
	proc := newProcess(s, shellbox.Program{})
	ok, err := s.SendRequest("subsystem", true, ssh.Marshal(&struct{ Name string }{"sftp"}))
	if err == nil && !ok {
		err = fmt.Errorf("%w: the server has no subsystem sftp: add \"Subsystem sftp "+
			"internal-sftp\" to its sshd_config", errors.ErrUnsupported)
	}
	if err != nil {
		proc.Close()
		return nil, err
	}
	if sshconn.KnowsCredit(string(s.on.Client.ServerVersion())) {
		proc.Credit = sshconn.FirstCredit
	}
	return proc, nil
}
