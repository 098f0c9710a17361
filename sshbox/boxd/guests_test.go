//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sshbox/internal/wire"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// A witness is a session of the owner's that was there before the bad guest came.
type witness struct {
	t      testing.TB
	client *ssh.Client
	in     io.Writer
	out    *bufio.Reader
	n      int
}

func (b *box) witness() *witness {
	b.t.Helper()
	client := b.owner()
	s := newSession(b.t, client)
	in, _ := s.StdinPipe()
	out, _ := s.StdoutPipe()
	if err := s.Start("cat"); err != nil {
		b.t.Fatal(err)
	}
	w := &witness{t: b.t, client: client, in: in, out: bufio.NewReader(out)}
	w.works()
	return w
}

// works checks that the session still is what it was.
func (w *witness) works() {
	w.t.Helper()
	w.n++
	said := fmt.Sprintln("line", w.n)
	heard := make(chan string, 1)
	go func() {
		io.WriteString(w.in, said)
		line, _ := w.out.ReadString('\n')
		heard <- line
	}()
	select {
	case line := <-heard:
		if line != said {
			w.t.Fatalf("the owner's session says %q", line)
		}
	case <-time.After(30 * time.Second):
		w.t.Fatal("the owner's session hangs")
	}
}

func (b *box) logged(text string) {
	b.t.Helper()
	waitFor(b.t, "the log says "+text, b.log.has(text))
}

func TestWrongLogins(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	before := b.steady()
	stranger := newKey(t)
	host := ssh.FixedHostKey(b.hostKey)
	silence := func(string, string, []string, []bool) ([]string, error) { return nil, nil }
	for name, c := range map[string]*ssh.ClientConfig{
		"a wrong key":     {Auth: []ssh.AuthMethod{ssh.PublicKeys(stranger)}, HostKeyCallback: host},
		"no key":          {HostKeyCallback: host},
		"a password":      {User: "root", Auth: []ssh.AuthMethod{ssh.Password("root"), ssh.KeyboardInteractive(silence)}, HostKeyCallback: host},
		"a wrong host":    {Auth: []ssh.AuthMethod{ssh.PublicKeys(b.key)}, HostKeyCallback: ssh.FixedHostKey(stranger.PublicKey())},
		"a key not owned": {Auth: []ssh.AuthMethod{ssh.PublicKeys(&impostor{newKey(t), b.key.PublicKey()})}, HostKeyCallback: host},
	} {
		if client, err := b.handshake(c); err == nil {
			client.Close()
			t.Error(name, " is let in")
		}
		w.works()
	}
	b.logged("unknown key")
	b.settled(before)
}

// An impostor signs with its own key for that of another.
type impostor struct {
	ssh.Signer
	other ssh.PublicKey
}

func (i *impostor) PublicKey() ssh.PublicKey { return i.other }

func TestRubbish(t *testing.T) {
	b := startBox(t, loginLimitIn+"=2s")
	w := b.witness()
	before := b.steady()
	for name, says := range map[string][]byte{
		"random bytes":     randomBytes(1 << 20),
		"nothing":          nil,
		"half a word":      []byte("SS"),
		"another protocol": []byte("GET / HTTP/1.1\r\nHost: box\r\n\r\n"),
		"no end of line":   bytes.Repeat([]byte("sandshell authorize "), 1<<16),
		"a long version":   append([]byte("SSH-2.0-"), bytes.Repeat([]byte("x"), 1<<20)...),
		"an old version":   []byte("SSH-1.5-x\r\n"),
		"a huge packet":    append([]byte("SSH-2.0-x\r\n"), 0xff, 0xff, 0xff, 0xff),
		"an empty packet":  append([]byte("SSH-2.0-x\r\n"), make([]byte, 100)...),
		"no key":           []byte(wire.Authorize + "\n"),
		"a bad key":        []byte(wire.Authorize + "ssh-ed25519 AAAA\n"),
		"then silence":     []byte("SSH-2.0-x\r\n"),
		"silence":          []byte("SSH-"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := b.dial()
			defer c.Close()
			go c.Write(says) // it is not to take all of it
			if strings.Contains(name, "half") || name == "nothing" {
				c.in.Close()
			}
			c.SetReadDeadline(time.Now().Add(30 * time.Second))
			answer, err := io.ReadAll(c)
			if err != nil {
				t.Errorf("boxd does not hang up: %v", err)
			}
			if len(answer) > 10000 || strings.Contains(string(answer), wire.Authorized) {
				t.Errorf("it answers %.100q", answer)
			}
		})
	}
	t.Cleanup(func() {
		w.works()
		b.logged("it speaks neither SSH nor ours")
		b.logged("authorize: ssh: ")
		b.logged("i/o timeout")
		b.settled(before)
	})
}

// TestUnreadAnswers has a guest that reads nothing, until boxd can write no more to it, and that then goes on asking.
func TestUnreadAnswers(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	key := newKey(t)
	b.admit(key)
	before := b.steady()
	for how, ask := range map[string]func(*ssh.Client, *ssh.Session) error{
		"nothing": func(*ssh.Client, *ssh.Session) error { return io.EOF },
		"global requests": func(c *ssh.Client, _ *ssh.Session) error {
			go c.SendRequest("rubbish", true, nil)
			_, _, err := c.SendRequest("rubbish", false, randomBytes(1000))
			return err
		},
		"channel requests": func(_ *ssh.Client, s *ssh.Session) error {
			go s.SendRequest("rubbish", true, nil)
			_, err := s.SendRequest("rubbish", false, randomBytes(1000))
			return err
		},
		"channels": func(c *ssh.Client, s *ssh.Session) error {
			go c.OpenChannel("session", nil)
			_, err := s.SendRequest("rubbish", false, randomBytes(1000))
			return err
		},
	} {
		deaf := &deafConn{joined: b.dial()}
		conn, channels, requests, err := ssh.NewClientConn(deaf, "box",
			&ssh.ClientConfig{Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(b.hostKey)})
		if err != nil {
			t.Fatal(err)
		}
		client := ssh.NewClient(conn, channels, requests)
		s := newSession(t, client)
		s.Stdout = io.Discard
		deaf.mu.Lock()
		go s.Start("yes") // whose answer it does not read
		waitFor(t, "boxd can write no more", deaf.full)
		deaf.SetWriteDeadline(time.Now().Add(time.Second))
		for range 3000 {
			if ask(client, s) != nil {
				break
			}
		}
		w.works()
		if out, _, err := runs(t, b.owner(), "echo beside"); out != "beside\n" || err != nil {
			t.Error(how, out, err)
		}
		deaf.mu.Unlock()
		client.Close()
		conn.Wait()
	}
	b.closeAllBut(w.client)
	b.settled(before)
}

// A deafConn reads nothing while mu is held.
type deafConn struct {
	*joined
	mu sync.Mutex
}

func (d *deafConn) Read(p []byte) (int, error) {
	n, err := d.joined.Read(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	return n, err
}

// full reports whether nothing more comes into the pipe.
func (d *deafConn) full() bool {
	conn, err := d.out.SyscallConn()
	if err != nil {
		return false
	}
	held := func() (n int) {
		conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		return n
	}
	was := held()
	time.Sleep(50 * time.Millisecond)
	return was > 100<<10 && held() == was
}

func TestChannelFlood(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	before := b.steady()
	guest := b.guest()
	other := b.guest()
	var opened []ssh.Channel
	for range guestChannels {
		ch, requests, err := guest.OpenChannel("session", nil)
		if err != nil {
			t.Fatal(err)
		}
		go ssh.DiscardRequests(requests)
		opened = append(opened, ch)
	}
	for range 100 {
		_, _, err := guest.OpenChannel("session", nil)
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || refused.Reason != ssh.ResourceShortage {
			t.Fatal(err)
		}
	}
	w.works()
	if out, _, err := runs(t, other, "echo beside"); out != "beside\n" || err != nil {
		t.Error(out, err)
	}
	for _, ch := range opened {
		ch.Close()
	}
	waitFor(t, "its channels are free again", func() bool {
		s, err := guest.NewSession()
		if err == nil {
			s.Close()
		}
		return err == nil
	})
	b.logged("too many channels on a connection")
	guest.Close()
	other.Close()
	b.settled(before)
}

func TestRequestFlood(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	before := b.steady()
	guest := b.guest()
	ch, requests, err := guest.OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	go ssh.DiscardRequests(requests)
	big := randomBytes(30000)
	for range 5000 {
		guest.SendRequest("rubbish", false, big)
		ch.SendRequest("env", false, big)
	}
	if ok, _, err := guest.SendRequest("keepalive@openssh.com", true, nil); ok || err != nil {
		t.Error(ok, err)
	}
	w.works()
	guest.Close()
	b.settled(before)
}

// TestOwnersRights asks as a guest for all that is the owner's alone.
func TestOwnersRights(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	guest := b.guest()
	for _, kind := range []string{wire.ProgramChannel, wire.PackChannel, wire.UnpackChannel, "x11", "forwarded-tcpip"} {
		_, _, err := guest.OpenChannel(kind, []byte("/etc/passwd"))
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || refused.Reason != ssh.UnknownChannelType {
			t.Error(kind, err)
		}
	}
	stranger := newKey(t)
	for _, kind := range []string{
		wire.TreeRequest, wire.AliveRequest, wire.MarkedRequest, wire.ModesRequest, wire.ResetModesRequest, wire.UptimeRequest, wire.SignalRequest, wire.SettleRequest,
		wire.HoldRequest, wire.ListRequest, wire.GuestRequest, "no-more-sessions@openssh.com",
	} {
		ok, reply, err := guest.SendRequest(kind, true, stranger.PublicKey().Marshal())
		if ok || len(reply) > 0 || err != nil {
			t.Error(kind, ok, reply, err)
		}
	}
	if _, err := b.login(stranger); err == nil {
		t.Error("a guest has let another in")
	}
	w.works()
}

// inside runs this test's binary in the box's namespaces, as a child of boxd, to misuse the socket.
func (b *box) inside(how string) string {
	b.t.Helper()
	out, errs, err := runs(b.t, b.owner(), fmt.Sprintf("%s=%s exec '%s' -test.run '^TestInside$' %s", insideAs, how, executable(b.t), b.id))
	if err != nil {
		b.t.Errorf("%s: %v\n%s%s", how, err, out, errs)
	}
	return out
}

const insideAs = "SANDSHELL_TEST_INSIDE"

// TestInside is what runs inside.
func TestInside(t *testing.T) {
	how, id := os.Getenv(insideAs), os.Args[len(os.Args)-1]
	if how == "" {
		t.Skip("TestFromInside runs it")
	}
	var pipes [2]int
	if err := unix.Pipe2(pipes[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	for range 1000 {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: wire.SocketName(id), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
		switch how {
		case "rubbish":
			c.Write(randomBytes(1000))
		case "one":
			c.WriteMsgUnix([]byte{0}, unix.UnixRights(pipes[0]), nil)
		case "pipe": // that nobody reads
			c.WriteMsgUnix([]byte{0}, unix.UnixRights(pipes[0], pipes[1]), nil)
		case "many":
			fds := make([]int, 200)
			c.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
		case "abandon":
			c.Close()
		}
	}
	for _, c := range held { // boxd hangs up on each of them
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("boxd still listens to it")
		}
		c.Close()
	}
}

func TestFromInside(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	before := b.steady()
	for _, how := range []string{"silence", "rubbish", "one", "pipe", "many", "abandon"} {
		b.inside(how)
		w.works()
	}
	b.logged("it comes from inside of the container")
	if n := strings.Count(b.log.String(), "\n"); n > 300 {
		t.Errorf("%d lines are logged", n)
	}
	client, err := b.login(b.key)
	if err != nil {
		t.Fatal("nobody else comes in any more: ", err)
	}
	client.Close()
	b.closeAllBut(w.client)
	b.settled(before)
}

// TestAuthorizeFromInside tries to become the owner with join, from inside: as a child of boxd, as an orphan, and in a nested pid
// namespace.
func TestAuthorizeFromInside(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	stranger := newKey(t)
	join := fmt.Sprintf("%s=1 '%s' join %s", actAs, executable(t), b.id)
	say := fmt.Sprintf("echo '%s%s'", wire.Authorize, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(stranger.PublicKey()))))
	for _, command := range []string{
		fmt.Sprintf("(%s; sleep 0.2) | %s", say, join),
		fmt.Sprintf("(%s; sleep 0.2) | (sh -c \"%s & \" & wait; sleep 0.2)", say, join),
		fmt.Sprintf("(%s; sleep 0.2) | unshare --fork --pid env %s", say, join),
		fmt.Sprintf("(%s; sleep 0.2) | nsenter --target 1 --pid env %s", say, join),
	} {
		out, errs, err := runs(t, b.owner(), command)
		if strings.Contains(out, wire.Authorized) {
			t.Errorf("%s: %q, %q, %v", command, out, errs, err)
		}
		w.works()
	}
	if _, err := b.login(stranger); err == nil {
		t.Error("the box has an owner from inside")
	}
	b.logged("it comes from inside of the container")
}

// TestOwnerReplaced has the owner's place taken from outside.
func TestOwnerReplaced(t *testing.T) {
	b := startBox(t)
	before := b.steady()
	former := b.key
	client := b.owner()
	guest := b.guest()
	b.key = newKey(t)
	b.authorize()
	if err := client.Wait(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the former owner's connection ended with ", err)
	}
	if _, err := b.login(former); err == nil {
		t.Error("the former owner still comes in")
	}
	if out, _, err := runs(t, guest, "echo on"); out != "on\n" || err != nil {
		t.Error(out, err)
	}
	if out, _, err := runs(t, b.owner(), "echo new"); out != "new\n" || err != nil {
		t.Error(out, err)
	}
	b.closeAllBut(nil)
	b.settled(before)
}

// TestManyCallers opens and abandons 1,000 connections from outside, some of which stay silent.
func TestManyCallers(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts 300 processes")
	}
	b := startBox(t, loginLimitIn+"=1m") // none is to time out meanwhile
	w := b.witness()
	before := b.steady()
	var silent []*joined
	for i := range 3 * maxCallers {
		c := b.dial()
		if i%3 == 0 {
			c.Write([]byte("SSH-2.0-x\r\n"))
			c.Close()
		} else {
			silent = append(silent, c)
		}
	}
	w.works()
	client, err := b.login(b.key)
	if err != nil {
		t.Fatal("the owner does not come in: ", err)
	}
	client.Close()
	b.logged("too many that do not log in")
	for _, c := range silent {
		c.Close()
	}
	b.settled(before)
}

// TestLogNobodyReads takes the log's reader away: the signal of a broken pipe must not end boxd.
func TestLogNobodyReads(t *testing.T) {
	b := startBox(t)
	b.logEnd.Close()
	w := b.witness()
	for range 3 {
		b.say("rubbish\n")
		w.works()
	}
	if err := exec.Command("kill", "-0", fmt.Sprint(b.pid)).Run(); err != nil {
		t.Error("boxd has ended")
	}
}
