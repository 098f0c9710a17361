//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// join hands its standard input and output to the box, and stays until the box has no more use for
// them: the engine closes the streams of a process when it ends.
func join(id string) error {
	yieldMemory() // while the file is this user's
	// Processes inside, of the same user, must not trace this one: it came from outside, and boxd
	// trusts it.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	name, err := socketOf(id)
	if err != nil {
		return err
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	// EAGAIN: somebody inside floods the socket, and its queue is full. ECONNREFUSED: boxd has only
	// just been started.
	for tries := 0; tries < joinTries && (errors.Is(err, unix.EAGAIN) ||
		errors.Is(err, unix.ECONNREFUSED)); tries++ {
		// there it listens before it has a name
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
	err = handOver(conn)
	// ETOOMANYREFS: all processes of this user's id, in whichever container, have as many
	// descriptors on their way as one process may have open (too_many_unix_fds in net/unix): many
	// boxes start at once.
	for tries := 0; tries < joinTries && errors.Is(err, unix.ETOOMANYREFS); tries++ {
		time.Sleep(joinPause)
		err = handOver(conn)
	}
	if err != nil {
		return fmt.Errorf("hand over the streams: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	// else they stay open here, and the client sees the end of a stream later than the box closes
	// it
	if err == nil {
		unix.Dup3(int(null.Fd()), 0, 0)
		unix.Dup3(int(null.Fd()), 1, 0)
	}
	io.Copy(io.Discard, conn)
	return nil
}

// For 5 s join tries again what other processes are in the way of.
const (
	joinTries = 500
	joinPause = 10 * time.Millisecond
)

func handOver(conn *net.UnixConn) error {
	_, _, err := conn.WriteMsgUnix([]byte{0}, unix.UnixRights(0, 1), nil)
	return err
}

// Streams are the input and output that join has handed over, as a net.Conn.
type streams struct {
	in, out *direct
	joined  net.Conn // to join, which ends when it is closed
}

// receive takes the streams that join hands over.
func receive(conn *net.UnixConn) (*streams, error) {
	oob := make([]byte, unix.CmsgSpace(2*4))
	var b [1]byte
	n, oobn, _, _, err := conn.ReadMsgUnix(b[:], oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	messages, _ := unix.ParseSocketControlMessage(oob[:oobn])
	for _, m := range messages {
		if got, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, got...)
		}
	}
	if n != 1 || len(fds) != 2 {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, errors.New("it hands over no streams")
	}
	for i, fd := range fds {
		if err := unix.SetNonblock(fd, true); err != nil {
			for _, fd := range fds[i:] {
				unix.Close(fd)
			}
			return nil, err
		}
	}
	// fewer turns for much output; it may fail
	unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, 1<<20)
	in, inErr := newDirect(os.NewFile(uintptr(fds[0]), "input"))
	out, outErr := newDirect(os.NewFile(uintptr(fds[1]), "output"))
	return &streams{in, out, conn}, errors.Join(inErr, outErr)
}

// watch closes the streams when join is killed: Docker cuts the streams of an exec 2 s after its
// end (ProcessEvent in moby's daemon/monitor.go), and would cut short what begins in between.
func (s *streams) watch() {
	s.joined.Read(make([]byte, 1)) // join says nothing more
	s.Close()
}

func (s *streams) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *streams) Write(p []byte) (int, error) { return s.out.Write(p) }

func (s *streams) Close() error {
	return errors.Join(s.in.Close(), s.out.Close(), s.joined.Close())
}

func (s *streams) LocalAddr() net.Addr  { return s.joined.LocalAddr() }
func (s *streams) RemoteAddr() net.Addr { return s.joined.RemoteAddr() }

func (s *streams) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}
func (s *streams) SetReadDeadline(t time.Time) error  { return s.in.SetReadDeadline(t) }
func (s *streams) SetWriteDeadline(t time.Time) error { return s.out.SetWriteDeadline(t) }
