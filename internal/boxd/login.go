//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// maxCallers bounds the connections that have not logged in. One more, and the oldest is dropped:
// so nobody can keep others out by opening connections without end.
const maxCallers = 64

// loginLimit is how long a connection may take to log in. Tests shorten it.
var loginLimit = 20 * time.Second

// called serves one connection to the socket. A process connects and hands over two streams, on
// which the client speaks SSH: see join.
//
// A process from inside the container, or of another user of the machine, is refused before
// anything is taken from it. No right depends on that, but it keeps the cheap floods out: no client
// of ours comes from inside, and descriptors are not like a network. A process that has handed them
// over still shares them, and could put them in blocking mode, in which not even Close returns.
func (s *server) called(c *net.UnixConn) {
	c.SetDeadline(time.Now().Add(loginLimit))
	var joined *streams
	err := errors.New("it comes from inside of the container")
	welcome := fromOutside
	if s.dir != "" {
		welcome, err = ofOwnUser, errors.New("it is another user's")
	}
	if welcome(c) {
		joined, err = receive(c)
	}
	if err != nil {
		s.refused(err)
		c.Close()
		return
	}
	c.SetDeadline(time.Time{})
	defer joined.Close()
	go joined.watch()
	s.serveStreams(joined)
}

// refused logs that a connection was refused. When there are many, it logs few of them: the log is
// on the engine's disk, and anyone inside may connect.
func (s *server) refused(err error) {
	if n := s.refusals.Add(1); n <= 100 || n%1000 == 0 {
		s.log.Warn("refused", "error", err, "refusals", n)
	}
}

// serveStreams serves one connection, from the login to its end.
func (s *server) serveStreams(raw net.Conn) {
	s.waiting(raw, true)
	raw.SetDeadline(time.Now().Add(loginLimit))
	in := bufio.NewReaderSize(raw, 64<<10) // x/crypto reads 4 KiB at a time
	buffered := &bufferedConn{Conn: raw, r: in}
	var err error
	if s.dir != "" {
		err = s.claimBefore(in, raw)
	}
	var sc *ssh.ServerConn
	var channels <-chan ssh.NewChannel
	var requests <-chan *ssh.Request
	if err == nil {
		sc, channels, requests, err = ssh.NewServerConn(buffered, s.config())
	}
	s.waiting(raw, false)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.refused(err)
		}
		return
	}
	defer sc.Close()
	raw.SetDeadline(time.Time{})
	c := &conn{ServerConn: sc, raw: buffered, s: s,
		owner: sc.Permissions.Extensions["role"] == "owner"}
	if !s.arrived(c, sc.Permissions.Extensions["key"]) {
		return
	}
	defer s.left(c)
	c.serve(channels, requests)
}

// waiting keeps the list of the connections that have not logged in yet: raw becomes one, or no
// longer is one.
func (s *server) waiting(raw net.Conn, begins bool) {
	var dropped net.Conn
	s.mu.Lock()
	if !begins {
		s.callers = slices.DeleteFunc(s.callers, func(c net.Conn) bool { return c == raw })
	} else {
		if len(s.callers) >= maxCallers {
			dropped, s.callers = s.callers[0], s.callers[1:]
		}
		s.callers = append(s.callers, raw)
	}
	s.mu.Unlock()
	if dropped != nil { // not under the lock: neither a log nor a Close is sure to return at once
		s.refused(errors.New("too many that do not log in: the oldest is dropped"))
		dropped.Close()
	}
}

// heed reads claims from boxd's own standard input, which only users of the engine can write to,
// and answers on its standard output. It returns when the input ends, as it does where there is
// none.
func (s *server) heed(in io.Reader, out io.Writer) {
	lines := bufio.NewReaderSize(in, wire.ClaimMax)
	for {
		line, err := lines.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) { // no claim is so long
			line, err = lines.ReadSlice('\n')
			line = line[:0]
		}
		if err != nil {
			return
		}
		claim, err := wire.ParseClaim(string(line))
		if err != nil { // a person types at docker attach
			s.refused(err)
			continue
		}
		// The image's command may have begun a line. One write, so that nothing comes in between.
		io.WriteString(out, "\n"+s.claimed(claim))
	}
}

// claimed makes the claim's key the owner's, and returns the answer.
func (s *server) claimed(claim wire.Claim) string {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(claim.Key))
	changed := false
	if err == nil {
		changed, err = s.own(string(key.Marshal()), claim.Adopts)
	}
	if err != nil {
		s.refused(fmt.Errorf("a claim: %w", err))
		return claim.Refuse(err)
	}
	if changed {
		s.only(nil)
		s.unlisten(func(*listener) bool { return true }) // they were the owner's before
	}
	return claim.Accept(s.hostKey.PublicKey())
}

// claimBefore handles the claim that may come before SSH on a machine, where the account is the
// authority.
func (s *server) claimBefore(in *bufio.Reader, out io.Writer) error {
	begin, err := in.Peek(len("SSH-"))
	if err != nil || string(begin) == "SSH-" {
		return err
	}
	line, err := in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("it speaks neither SSH nor ours: %.40q", line)
	}
	claim, err := wire.ParseClaim(string(line))
	if err == nil {
		_, err = io.WriteString(out, s.claimed(claim))
	}
	return err
}

// own makes the key the owner's; with adopts, only if no other is. It reports whether it was not.
func (s *server) own(key string, adopts bool) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if adopts && s.owner != "" && s.owner != key {
		return false, errors.New("the box has an owner")
	}
	changed = s.owner != key
	s.owner = key
	return changed, nil
}

// config has the owner's key and the guests' keys accepted, as the box's one user, whatever name
// the client gives.
func (s *server) config() *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-sandshell_boxd",
		MaxAuthTries:  20, // a person's agent may offer many keys
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			role := ""
			switch text := string(key.Marshal()); {
			case text == s.owner:
				role = "owner"
			case s.guests[text]:
				role = "guest"
			default:
				return nil, errors.New("unknown key")
			}
			return &ssh.Permissions{Extensions: map[string]string{"role": role,
				"key": string(key.Marshal())}}, nil
		},
	}
	config.AddHostKey(s.hostKey)
	return config
}

// arrived adds c to the connections. It reports false if c's key was the owner's when it logged in
// and no longer is, and once the box ends.
func (s *server) arrived(c *conn, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || c.owner && key != s.owner {
		return false
	}
	s.conns[c] = struct{}{}
	close(s.arrival)
	s.arrival = make(chan struct{})
	if c.owner && s.alone != nil {
		s.alone.Stop()
	}
	return true
}

// only closes all of the owner's connections but c. The owner has one at a time; an older one was
// cut, and boxd may not have noticed.
func (s *server) only(c *conn) {
	s.mu.Lock()
	var others []*conn
	for other := range s.conns {
		if other.owner && other != c {
			others = append(others, other)
		}
	}
	s.mu.Unlock()
	for _, other := range others {
		other.Close()
	}
}

// left removes c from the connections. Without any of the owner's, the box ends after the time that
// it lingers, unless it is kept.
func (s *server) left(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	for c := range s.conns {
		if c.owner {
			return
		}
	}
	if c.owner && s.alone != nil {
		s.alone.Reset(s.linger)
	}
}

// fromOutside reports whether the process at the other end came into the container from outside, as
// an engine's exec does: then its parent is in no namespace of the container's, and its parent's id
// shows as 0. No process inside can get such a parent: an orphan's parent is process 1.
//
// The process may have ended meanwhile, and its id be another process's, maybe of one from outside.
// Its pidfd cannot be another's, and tells whether the process is still there. (Linux has pidfds of
// a socket's peer since 6.5.)
func fromOutside(c *net.UnixConn) bool {
	conn, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	pidfd := -1
	conn.Control(func(fd uintptr) {
		switch peer, missing := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET,
			unix.SO_PEERPIDFD); missing {
		case nil:
			pidfd = peer
		case unix.ENOPROTOOPT:
		default:
			err = missing
			return
		}
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if pidfd >= 0 {
		defer unix.Close(pidfd)
	}
	if err != nil || cred == nil || cred.Pid <= 1 || !parentless(int(cred.Pid)) {
		return false
	}
	return pidfd < 0 || unix.PidfdSendSignal(pidfd, 0, nil, 0) != unix.ESRCH
}

// parentless reports whether the parent's id of a process shows as 0.
func parentless(pid int) bool {
	stat, err := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	return ok && len(fields) > 1 && fields[1] == "0"
}

// A bufferedConn is read through a buffer.
type bufferedConn struct {
	net.Conn
	r     *bufio.Reader
	ended atomic.Bool // a read has failed
}

func (b *bufferedConn) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil {
		b.ended.Store(true)
	}
	return n, err
}
