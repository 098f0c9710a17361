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

// maxPending bounds the connections that have not logged in. One more drops the oldest, so nobody
// can keep others out by opening connections without end.
const maxPending = 64

// loginLimit bounds the time from a connection to its login. Tests shorten it.
var loginLimit = 20 * time.Second

// serveJoin serves one connection to the socket. The process at the other end is "boxd join": it
// passes two streams, on which the client speaks SSH.
//
// A process in the container, or of another user of the machine, is refused before anything is
// received from it. No right depends on this. But no client comes from there, and the refusal keeps
// cheap floods out. Passed descriptors are not like a network: a process that has passed them still
// shares them, and could put them in blocking mode, in which not even Close returns.
func (s *server) serveJoin(c *net.UnixConn) {
	c.SetDeadline(time.Now().Add(loginLimit))
	var joined *streams
	var claim string
	err := errors.New("it comes from inside the container")
	allowed := fromOutside
	if s.dir != "" {
		allowed, err = fromSameUser, errors.New("it belongs to another user")
	}
	if allowed(c) {
		joined, claim, err = s.receiveStreams(c)
	}
	if err != nil {
		s.logRefusal(err)
		c.Close()
		return
	}
	c.SetDeadline(time.Time{})
	defer joined.Close()
	go joined.closeWithJoin()
	s.serveStreams(joined, claim)
}

// logRefusal logs that a connection was refused. If there are many, it logs few of them: the log is
// on the engine's disk, and any process in the box may connect.
func (s *server) logRefusal(err error) {
	if n := s.refusals.Add(1); n <= 100 || n%1000 == 0 {
		s.log.Warn("refused", "error", err, "refusals", n)
	}
}

// serveStreams serves one connection, from the login to its end. If claim is not "", it is the
// client's, which speaks plainly.
func (s *server) serveStreams(raw net.Conn, claim string) {
	s.addPending(raw)
	raw.SetDeadline(time.Now().Add(loginLimit))
	in := bufio.NewReaderSize(raw, 64<<10) // x/crypto reads 4 KiB at a time
	buffered := &bufferedConn{Conn: raw, r: in}
	c := &conn{raw: buffered, s: s}
	channels, requests, err := c.logIn(claim)
	s.removePending(raw)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.logRefusal(err)
		}
		return
	}
	defer c.Close()
	raw.SetDeadline(time.Time{})
	if !s.addConn(c) {
		return
	}
	defer s.removeConn(c)
	if joined, ok := raw.(*streams); ok && c.owner != nil {
		s.stderr.add(joined.err)
	}
	s.watchOwners()
	c.serve(channels, requests)
}

// logIn makes the SSH connection, and finds out whose it is.
func (c *conn) logIn(claim string) (<-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	machine := c.s.dir != ""
	if machine && claim != "" {
		key, err := c.s.claimOnStart(claim, c.raw)
		if err != nil {
			return nil, nil, err
		}
		plain, channels, requests, err := wire.Plain(c.raw)
		c.Conn, c.role, c.key = plain, ownerRole, key
		return channels, requests, err
	}
	if machine {
		if err := c.s.claimBeforeSSH(c.raw.r, c.raw); err != nil {
			return nil, nil, err
		}
	}
	sc, channels, requests, err := ssh.NewServerConn(c.raw, c.s.sshConfig())
	if err != nil {
		return nil, nil, err
	}
	c.Conn, c.role, c.key = sc, sc.Permissions.Extensions["role"], sc.Permissions.Extensions["key"]
	return channels, requests, nil
}

// The roles of a client.
const (
	ownerRole = "owner"
	guestRole = "guest"
)

// addPending adds raw to the connections that have not logged in.
func (s *server) addPending(raw net.Conn) {
	var dropped net.Conn
	s.mu.Lock()
	if len(s.pending) >= maxPending {
		dropped, s.pending = s.pending[0], s.pending[1:]
	}
	s.pending = append(s.pending, raw)
	s.mu.Unlock()
	if dropped != nil { // without the lock: neither the log nor Close is sure to return at once
		s.logRefusal(errors.New("too many connections do not log in: the oldest is dropped"))
		dropped.Close()
	}
}

// removePending removes raw from the connections that have not logged in.
func (s *server) removePending(raw net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(c net.Conn) bool { return c == raw })
}

// readClaims reads claims from boxd's own standard input, to which only users of the engine can
// write, and answers on its standard output. It returns when the input ends, which is at once if
// boxd has none.
func (s *server) readClaims(in io.Reader, out io.Writer) {
	lines := bufio.NewReaderSize(in, wire.ClaimMax)
	for {
		line, err := lines.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) { // no claim is that long
			line, err = lines.ReadSlice('\n')
			line = line[:0]
		}
		if err != nil {
			return
		}
		claim, err := wire.ParseClaim(string(line))
		if err != nil { // a person may type at docker attach
			s.logRefusal(err)
			continue
		}
		// The image's command may have begun a line. A single Write keeps the answer in one piece.
		answer, _, _ := s.answerClaim(claim)
		io.WriteString(out, "\n"+answer)
	}
}

// answerClaim makes the claim's key an owner's. It returns the answer, and the key in SSH's wire
// format.
func (s *server) answerClaim(claim wire.Claim) (answer, key string, err error) {
	parsed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(claim.Key))
	if err == nil && claim.Renews != "" {
		err = s.renew(claim.Renews)
	}
	if err == nil {
		key = string(parsed.Marshal())
		err = s.addOwner(key, claim)
	}
	if err != nil {
		s.logRefusal(fmt.Errorf("a claim: %w", err))
		return claim.Refuse(err), "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return claim.Accept(s.hostKey.PublicKey()), key, nil
}

// claimOnStart handles the claim that boxd start has handed over, and returns the claim's key. On
// this connection SSH would protect nothing: a program that can read or change the connection could
// also have changed the claim. Connections after a cut have no claim. They are SSH, and must have
// the keys of the claim and of its answer.
func (s *server) claimOnStart(text string, out io.Writer) (key string, err error) {
	claim, err := wire.ParseClaim(text)
	if err != nil {
		return "", err
	}
	answer, key, err := s.answerClaim(claim)
	if _, written := io.WriteString(out, answer); err == nil {
		err = written
	}
	return key, err
}

// claimBeforeSSH handles a claim that comes before SSH. Only a box on a machine allows that: there
// any login to the account may claim the box.
func (s *server) claimBeforeSSH(in *bufio.Reader, out io.Writer) error {
	begin, err := in.Peek(len("SSH-"))
	if err != nil || string(begin) == "SSH-" {
		return err
	}
	line, err := in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("it is neither SSH nor a claim: %.40q", line)
	}
	claim, err := wire.ParseClaim(string(line))
	if err == nil {
		answer, _, _ := s.answerClaim(claim)
		_, err = io.WriteString(out, answer)
	}
	return err
}

// sshConfig returns a configuration that accepts the owners' keys and the guests' keys. The client
// may give any user name: the box has one user.
func (s *server) sshConfig() *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-sandshell_boxd",
		MaxAuthTries:  20, // a person's agent may offer many keys
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			role := ""
			switch text := key.Marshal(); {
			case s.owners[string(text)] != nil:
				role = ownerRole
			case s.guests[string(text)]:
				role = guestRole
			default:
				return nil, errors.New("unknown key")
			}
			return &ssh.Permissions{Extensions: map[string]string{"role": role,
				"key": string(key.Marshal())}}, nil
		},
	}
	s.mu.Lock()
	config.AddHostKey(s.hostKey)
	s.mu.Unlock()
	return config
}

// fromOutside reports whether the process at the other end came into the container from outside, as
// an engine's exec does. Then its parent is in none of the container's namespaces, and the parent's
// id shows as 0. No process of the container can get such a parent: an orphan's parent is process
// 1.
//
// The process may have ended meanwhile, and its id may belong to another process, perhaps one from
// outside. The pidfd cannot belong to another process, and tells whether the process still exists.
// (Linux has pidfds of a socket's peer since 6.5.)
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

// parentless reports whether the id of a process's parent shows as 0.
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
