//go:build linux

package main

import (
	"io"
	"os"
	"syscall"
	"unsafe"

	"github.com/sandshell/sandshell/internal/tty"
	"golang.org/x/sys/unix"
)

// A direct is a file in non-blocking mode. Its system calls never wait, so they are made without
// telling Go's scheduler. If a call lasts longer than 20 µs, the scheduler assumes that it waits,
// and passes the only right to run (GOMAXPROCS is 1) to another thread. That costs more than the
// call.
type direct struct {
	*os.File
	conn    syscall.RawConn
	reading tty.Reading // if it is a terminal's master
}

func newDirect(f *os.File) (*direct, error) {
	conn, err := f.SyscallConn()
	return &direct{File: f, conn: conn}, err
}

// Read implements io.Reader.
func (d *direct) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err = call(unix.SYS_READ, d.waitToRead, p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (d *direct) waitToRead(read func(fd uintptr) bool) error {
	return d.reading.Wait(d.conn, read)
}

// Write implements io.Writer.
func (d *direct) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var written int
		written, err = call(unix.SYS_WRITE, d.conn.Write, p[n:])
		n += written
	}
	return n, err
}

// call reads or writes p once. when is the RawConn's Read or Write, which waits until the file is
// ready.
func call(number uintptr, when func(func(fd uintptr) bool) error, p []byte) (n int, err error) {
	var result uintptr
	var errno unix.Errno
	err = when(func(fd uintptr) bool {
		for {
			result, _, errno = unix.RawSyscall(number, fd, uintptr(unsafe.Pointer(&p[0])),
				uintptr(len(p)))
			if errno != unix.EINTR {
				return errno != unix.EAGAIN
			}
		}
	})
	if err == nil && errno != 0 {
		err = errno
	}
	if err != nil {
		return 0, err
	}
	return int(result), nil
}
