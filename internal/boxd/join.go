//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/sys/unix"
)

// join passes its standard streams to the box, and stays until the box no longer needs
// them: when a process ends, the engine closes its streams.
func join(id string) error { return joinWith(id, "") }

// joinWith is join. If claim is not "", it is the client's claim, and the client speaks plainly.
func joinWith(id, claim string) error {
	raiseOOMScore() // before the file becomes root's
	// boxd serves this process because it came from outside. So processes of the same user in the
	// box must not trace it.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	name, err := socketOf(id)
	if err != nil {
		return err
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	// EAGAIN: a program of the box floods the socket, and its queue is full. ECONNREFUSED: boxd has
	// just been started and does not listen yet.
	for tries := 0; tries < joinTries && (errors.Is(err, unix.EAGAIN) ||
		errors.Is(err, unix.ECONNREFUSED)); tries++ {
		// On a machine, boxd listens before the box has its name.
		if name == machineSocket && errors.Is(err, unix.ECONNREFUSED) {
			return errNoBox
		}
		time.Sleep(joinPause)
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	}
	if err != nil {
		return fmt.Errorf("reach the box: %w", err)
	}
	defer conn.Close()
	err = handOver(conn, claim)
	// ETOOMANYREFS: the processes with this user's id, in all containers together, are passing as
	// many descriptors as one process may have open (too_many_unix_fds in net/unix). That happens
	// when many boxes start at once.
	for tries := 0; tries < joinTries && errors.Is(err, unix.ETOOMANYREFS); tries++ {
		time.Sleep(joinPause)
		err = handOver(conn, claim)
	}
	if err != nil {
		return fmt.Errorf("hand over the streams: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	// If they stayed open here, the client would not see the end of a stream when the box closes
	// it.
	if err == nil {
		unix.Dup3(int(null.Fd()), 0, 0)
		unix.Dup3(int(null.Fd()), 1, 0)
		unix.Dup3(int(null.Fd()), 2, 0)
	}
	io.Copy(io.Discard, conn)
	return nil
}

// join tries for 5 s if other processes are in the way.
const (
	joinTries = 500
	joinPause = 10 * time.Millisecond
)

// handOver passes the streams in one message, which the claim is a part of.
func handOver(conn *net.UnixConn, claim string) error {
	_, _, err := conn.WriteMsgUnix(append([]byte{0}, claim...), unix.UnixRights(0, 1, 2), nil)
	return err
}

// Streams are what join has passed: the input and output as a net.Conn, and the standard error.
type streams struct {
	in, out *direct
	err     *os.File
	stderr  *stderr  // that err may have been added to
	joined  net.Conn // to the process "boxd join", which ends when this is closed
}

// receiveStreams receives the streams that join passes, and the claim, if there is one.
func (s *server) receiveStreams(conn *net.UnixConn) (joined *streams, claim string, err error) {
	oob := make([]byte, unix.CmsgSpace(3*4))
	var b [1 + wire.ClaimMax]byte
	n, oobn, _, _, err := conn.ReadMsgUnix(b[:], oob)
	if err != nil {
		return nil, "", err
	}
	var fds []int
	messages, _ := unix.ParseSocketControlMessage(oob[:oobn])
	for _, m := range messages {
		if got, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, got...)
		}
	}
	if n < 1 || len(fds) != 3 {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, "", errors.New("it passes no streams")
	}
	for _, fd := range fds {
		if err := unix.SetNonblock(fd, true); err != nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
			return nil, "", err
		}
	}
	// A larger pipe needs fewer switches for much output. It is no fault if this fails.
	unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, 1<<20)
	in, inErr := newDirect(os.NewFile(uintptr(fds[0]), "input"))
	out, outErr := newDirect(os.NewFile(uintptr(fds[1]), "output"))
	joined = &streams{in, out, os.NewFile(uintptr(fds[2]), "error"), s.stderr, conn}
	return joined, string(b[1:n]), errors.Join(inErr, outErr)
}

// closeWithJoin closes the streams when join is killed. Docker cuts the streams of an exec 2 s
// after its end (ProcessEvent in moby's daemon/monitor.go), and would interrupt what begins in
// between.
func (s *streams) closeWithJoin() {
	s.joined.Read(make([]byte, 1)) // join sends nothing more
	s.Close()
}

func (s *streams) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *streams) Write(p []byte) (int, error) { return s.out.Write(p) }

func (s *streams) Close() error {
	s.stderr.remove(s.err)
	return errors.Join(s.in.Close(), s.out.Close(), s.err.Close(), s.joined.Close())
}

func (s *streams) LocalAddr() net.Addr  { return s.joined.LocalAddr() }
func (s *streams) RemoteAddr() net.Addr { return s.joined.RemoteAddr() }

func (s *streams) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}
func (s *streams) SetReadDeadline(t time.Time) error  { return s.in.SetReadDeadline(t) }
func (s *streams) SetWriteDeadline(t time.Time) error { return s.out.SetWriteDeadline(t) }
