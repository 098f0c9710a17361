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

// runFiles starts the subsystem sftp: another process of boxd's own program, as a child like the
// user's programs. In process 1 itself, a panic would end the box, and opening a FIFO would block
// one of its threads.
func (s *session) runFiles() {
	err := s.start(&prepared{path: wire.OwnProgram, args: []string{"boxd", "sftp"}, env: s.c.s.env,
		dir: s.c.s.home()})
	if err != nil {
		s.fail(statusNotStarted, fmt.Sprintf("sftp: %v", err))
	}
}

// serveOwner is the program with which the owner reaches the box's files. The owner sets
// permissions after it has made a file: until then the file is nobody else's. It asks where ~ is by
// the name of the directory in which the server begins.
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
