//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/pkg/sftp"
	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// runFiles starts the subsystem sftp. It is another process of boxd's own program, and a child like
// the user's programs. In boxd itself a panic would end the box, and opening a FIFO would block a
// thread.
func (s *session) runFiles() {
	err := s.start(&prepared{path: wire.OwnProgram, args: []string{"boxd", "sftp"}, env: s.c.s.env,
		dir: s.c.s.startDir()})
	if err != nil {
		s.fail(statusNotStarted, fmt.Sprintf("sftp: %v", err))
	}
}

// serveOwner is the command "boxd files", with which the owner reaches the box's files. The owner
// sets permissions after it has made a file, and until then no other user may read it. To learn
// what ~ is, the owner asks for the server's working directory.
func serveOwner() error {
	syscall.Umask(0o077)
	if home := os.Getenv("HOME"); home != "" {
		return serveFiles(sftp.WithServerWorkingDirectory(home))
	}
	return serveFiles()
}

// serveFiles speaks SFTP on the standard streams.
func serveFiles(options ...sftp.ServerOption) error {
	server, err := sftp.NewServer(struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout}, options...)
	if err == nil {
		err = server.Serve()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) { // a connection that was cut
		err = nil
	}
	return err
}
