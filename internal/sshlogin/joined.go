package sshlogin

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A joined is a net.Conn on the standard streams of boxd join. It owns the login that they are on.
type joined struct {
	p       shellbox.Process
	in      io.Writer
	out     io.Reader
	h       Login
	box     *Box
	reading sync.WaitGroup // the goroutine that reads standard error
	closing sync.Once
	*remotebox.Stderr
}

func newJoined(p shellbox.Process, h Login, box *Box) *joined {
	j := &joined{p: p, in: p.Stdin(), out: p.Stdout(), h: h, box: box,
		Stderr: remotebox.NewStderr(nil)}
	j.reading.Go(func() { io.Copy(j.Stderr, p.Stderr()) })
	return j
}

// Read reads standard output. At its end, Read notes if there was no boxd to join, and has read
// standard error too, in which boxd has its last words.
func (j *joined) Read(p []byte) (int, error) {
	n, err := j.out.Read(p)
	if errors.Is(err, io.EOF) {
		late := time.AfterFunc(endLimit, func() { j.p.Close() })
		defer late.Stop()
		if status := j.status(); status == wire.NoBox || status == notFound {
			j.box.markEnded()
		}
		j.reading.Wait()
	}
	return n, err
}

// notFound is the exit status of a shell whose program is not there.
const notFound = 127

// endLimit bounds the time from the end of a program's output until the server sends its status and
// the rest of its standard error.
const endLimit = 2 * time.Second

// status returns the exit code. It returns -1 if the server does not send it.
func (j *joined) status() int {
	status, err := j.p.Wait()
	if err != nil {
		return -1
	}
	return status.Code
}

func (j *joined) Write(p []byte) (int, error) { return j.in.Write(p) }

// Close ends the connection, and the login with it.
func (j *joined) Close() error {
	j.closing.Do(func() {
		j.p.Close()
		j.h.Close()
		j.reading.Wait()
	})
	return nil
}

func (j *joined) LocalAddr() net.Addr              { return address("") }
func (j *joined) RemoteAddr() net.Addr             { return address(j.box.Dir) }
func (j *joined) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (j *joined) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (j *joined) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// An address is the address of a box: its directory.
type address string

func (address) Network() string  { return "boxd" }
func (a address) String() string { return string(a) }
