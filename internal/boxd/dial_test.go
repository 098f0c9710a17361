//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// answering listens. When the input of a connection has ended, it answers with that input and
// "end".
func answering(t testing.TB, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go answer(l)
	return l
}

func answer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			got, _ := io.ReadAll(c)
			c.Write(append(got, "end"...))
		}()
	}
}

// asks sends data, ends its output, and reads the answer.
func asks(c net.Conn, data []byte) error {
	defer c.Close()
	go func() {
		c.Write(data)
		c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err == nil && !bytes.Equal(got, append(bytes.Clone(data), "end"...)) {
		err = fmt.Errorf("%d bytes came back of %d", len(got), len(data))
	}
	return err
}

func randomBytes(n int) []byte {
	data := make([]byte, n)
	rand.Read(data)
	return data
}

func TestDirect(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	tcp := answering(t, "tcp", "127.0.0.1:0").Addr().String()
	_, port, _ := net.SplitHostPort(tcp)
	socket := filepath.Join(b.dir, "socket")
	answering(t, "unix", socket)
	answering(t, "unix", filepath.Join(b.dir, "@name"))
	targets := [][2]string{{"tcp", tcp}, {"tcp", "localhost:" + port}, {"unix", socket},
		{"unix", "socket"}, {"unix", "@name"}}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		t.Cleanup(func() { l.Close() })
		go answer(l)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		targets = append(targets, [2]string{"tcp", "[::1]:" + port},
			[2]string{"tcp", "localhost:" + port})
	}
	before := b.steady()
	for _, to := range targets {
		for _, size := range []int{0, 1, 5 << 20} {
			c, err := client.Dial(to[0], to[1])
			if err != nil {
				t.Error(to, err)
				continue
			}
			if err := asks(c, randomBytes(size)); err != nil {
				t.Error(to, err)
			}
		}
	}
	b.settled(before)

	errs := make(chan error)
	for i := range 200 {
		go func() {
			to := targets[i%len(targets)]
			c, err := client.Dial(to[0], to[1])
			if err == nil {
				err = asks(c, randomBytes(10000))
			}
			errs <- err
		}()
	}
	for range 200 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	b.settled(before)
}

func TestDirectLarge(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.Copy(c, c)
	}()
	c, err := client.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const size = 100 << 20
	go func() {
		io.Copy(c, io.LimitReader(zeros{}, size))
		c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	if n, err := io.Copy(io.Discard, c); n != size || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestDirectClosed closes either end while the other waits.
func TestDirectClosed(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	before := b.steady()
	both := func() (ours, theirs net.Conn) {
		t.Helper()
		ours, err := client.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if theirs, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		return ours, theirs
	}
	var b1 [1]byte

	ours, theirs := both()
	ours.Close()
	if n, err := theirs.Read(b1[:]); n != 0 || err != io.EOF {
		t.Error("the server reads ", n, err)
	}
	b.settled(before) // although the server keeps its end open
	theirs.Close()

	ours, theirs = both()
	theirs.Close()
	if n, err := ours.Read(b1[:]); n != 0 || err != io.EOF {
		t.Error("the client reads ", n, err)
	}
	ours.Close()

	// Data that was sent just before the end arrives.
	ours, theirs = both()
	data := randomBytes(1 << 20)
	go func() {
		ours.Write(data)
		ours.Close()
	}()
	if got, err := io.ReadAll(theirs); !bytes.Equal(got, data) || err != nil {
		t.Errorf("%d bytes of %d, %v", len(got), len(data), err)
	}
	theirs.Close()

	// The server reads nothing, and then resets the connection.
	ours, theirs = both()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		io.Copy(ours, io.LimitReader(zeros{}, 20<<20))
	}()
	theirs.(*net.TCPConn).SetLinger(0)
	theirs.Close()
	<-wrote
	ours.Close()
	b.settled(before)

	// The server stops reading, and sends something later. The client must not block until then.
	socket, err := net.Listen("unix", filepath.Join(b.dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if ours, err = client.Dial("unix", "socket"); err != nil {
		t.Fatal(err)
	}
	if theirs, err = socket.Accept(); err != nil {
		t.Fatal(err)
	}
	theirs.(*net.UnixConn).CloseRead()
	if n, err := io.Copy(ours, io.LimitReader(zeros{}, 20<<20)); n != 20<<20 || err != nil {
		t.Error(n, err)
	}
	io.WriteString(theirs, "end")
	theirs.Close()
	if got, err := io.ReadAll(ours); string(got) != "end" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	ours.Close()
	b.settled(before)
}

func TestDirectRefused(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_, port, _ := net.SplitHostPort(closed)
	l.Close()
	file := filepath.Join(b.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ network, address, message string }{
		{"tcp", closed, "Connection refused"},
		{"tcp", "localhost:" + port, "Connection refused"},
		{"unix", filepath.Join(b.dir, "none"), "No such file or directory"},
		{"unix", file, "Connection refused"},
		{"unix", file + "/x", "Not a directory"},
		{"unix", "/" + strings.Repeat("x", 200), "Invalid argument"},
		{"unix", "a\x00b", "Invalid argument"},
		{"unix", "", "Invalid argument"},
	} {
		conn, err := client.Dial(c.network, c.address)
		var refused *ssh.OpenChannelError
		if err == nil {
			conn.Close()
		}
		if !errors.As(err, &refused) || refused.Reason != ssh.ConnectionFailed ||
			!strings.HasPrefix(refused.Message, c.message) {
			t.Errorf("%s: %v", c.address, err)
		}
	}
	for _, extra := range [][]byte{nil, {0, 0, 0, 9}, ssh.Marshal(&struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}{"localhost", 65536 + 22, "", 0})} {
		for _, kind := range []string{"direct-tcpip", "direct-streamlocal@openssh.com"} {
			if _, _, err := client.OpenChannel(kind, extra); err == nil {
				t.Errorf("%s of %q", kind, extra)
			}
		}
	}
}

// TestReasons tests the texts of errors that are hard to provoke.
func TestReasons(t *testing.T) {
	for err, want := range map[error]string{
		&net.OpError{Err: os.NewSyscallError("connect", syscall.EACCES)}: "Permission denied",
		&net.OpError{Err: os.NewSyscallError("connect",
			syscall.ENETUNREACH)}: "Network is unreachable",
		&net.OpError{Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}: "No route to host",
		&net.OpError{Err: os.NewSyscallError("connect",
			syscall.ETIMEDOUT)}: "Connection timed out",
		&net.OpError{
			Err: os.NewSyscallError("s", syscall.EAFNOSUPPORT)}: "Address family not supported " +
			"by protocol",
		&net.OpError{
			Err: os.ErrDeadlineExceeded}: "Connection timed out",
		context.DeadlineExceeded: "Connection timed out",
		&net.OpError{
			Err: &net.DNSError{Name: "x", IsNotFound: true}}: "Name or service not known: x",
		&net.OpError{Err: &net.DNSError{Name: "x", IsTimeout: true}}: "Temporary failure in " +
			"name resolution: x",
	} {
		if got := reason(err); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
}

// TestNamesInABareImage resolves names with neither /etc/hosts nor /etc/resolv.conf.
func TestNamesInABareImage(t *testing.T) {
	client := startBox(t, rootIn+"="+t.TempDir()).guest()
	_, port, _ := net.SplitHostPort(answering(t, "tcp", "127.0.0.1:0").Addr().String())
	for _, name := range []string{"localhost", "LOCALHOST.", "127.0.0.1"} {
		c, err := client.Dial("tcp", name+":"+port)
		if err == nil {
			err = asks(c, []byte("x"))
		}
		if err != nil {
			t.Error(name, err)
		}
	}
}

// TestFullQueue dials a socket that accepts nothing for a while.
func TestFullQueue(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	path := filepath.Join(b.dir, "socket")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}),
			syscall.Listen(fd, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	first, err := client.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second := make(chan error)
	go func() {
		c, err := client.Dial("unix", path)
		if err == nil {
			c.Close()
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatal("the queue is not full: ", err)
	case <-time.After(100 * time.Millisecond):
	}
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go answer(l)
	if err := <-second; err != nil {
		t.Error(err)
	}
}
