//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pkg/sftp"
	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// runFiles starts the subsystem sftp. It is another process of boxd's own program, and a child like
// the user's programs. In boxd itself a panic would end the box, and opening a FIFO would block a
// thread.
func (s *session) runFiles() {
	err := s.start(&prepared{path: wire.OwnProgram, args: []string{"boxd", "sftp"},
		env: s.c.s.environ(),
		dir: s.c.s.startDir()})
	if err != nil {
		s.fail(statusNotStarted, fmt.Sprintf("sftp: %v", err))
	}
}

// serveFiles speaks SFTP on the standard streams.
func serveFiles() error { return serveSFTP(os.Stdin, os.Stdout) }

// serveSFTP speaks SFTP.
func serveSFTP(in io.Reader, out io.WriteCloser, options ...sftp.ServerOption) error {
	server, err := sftp.NewServer(struct {
		io.Reader
		io.WriteCloser
	}{in, out}, options...)
	if err == nil {
		err = server.Serve()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) { // a connection that was cut
		err = nil
	}
	return err
}
