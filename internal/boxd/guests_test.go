//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"golang.org/x/crypto/ssh"
)

// A witness is a session of the owner that is older than the hostile guest.
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

// works checks that the session still answers.
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
	case <-time.After(testenv.Limit):
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
		"a wrong key": {Auth: []ssh.AuthMethod{ssh.PublicKeys(stranger)},
			HostKeyCallback: host},
		"no key": {HostKeyCallback: host},
		"a password": {User: "root", Auth: []ssh.AuthMethod{ssh.Password("root"),
			ssh.KeyboardInteractive(silence)}, HostKeyCallback: host},
		"a wrong host": {Auth: []ssh.AuthMethod{ssh.PublicKeys(b.key)},
			HostKeyCallback: ssh.FixedHostKey(stranger.PublicKey())},
		"a key not owned": {Auth: []ssh.AuthMethod{ssh.PublicKeys(
			&impostor{newKey(t), b.key.PublicKey()})}, HostKeyCallback: host},
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

// An impostor offers another's public key, and signs with its own.
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
		"no key":           []byte("sandshell authorize \n"),
		"a bad key":        []byte("sandshell authorize N ssh-ed25519 AAAA\n"),
		"then silence":     []byte("SSH-2.0-x\r\n"),
		"silence":          []byte("SSH-"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := b.dial()
			defer c.Close()
			go c.Write(says) // boxd may not read all of it
			if strings.Contains(name, "half") || name == "nothing" {
				c.in.Close()
			}
			c.SetReadDeadline(time.Now().Add(testenv.Limit))
			answer, err := io.ReadAll(c)
			if err != nil {
				t.Errorf("boxd does not hang up: %v", err)
			}
			if len(answer) > 10000 || strings.Contains(string(answer), "host-key") {
				t.Errorf("it answers %.100q", answer)
			}
		})
	}
	t.Cleanup(func() {
		w.works()
		b.logged("ssh: ")
		b.logged("i/o timeout")
		b.settled(before)
	})
}

// In TestOwnersRights, a guest asks for everything that only the owner may do.
func TestOwnersRights(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	guest := b.guest()
	for _, kind := range []string{wire.ProgramChannel, wire.PackChannel, wire.UnpackChannel, "x11",
		"forwarded-tcpip"} {
		_, _, err := guest.OpenChannel(kind, []byte("/etc/passwd"))
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || refused.Reason != ssh.UnknownChannelType {
			t.Error(kind, err)
		}
	}
	stranger := newKey(t)
	for _, kind := range []string{
		wire.TreeRequest, wire.AliveRequest, wire.MarkedRequest, wire.ResetModesRequest,
		wire.UptimeRequest, wire.SignalRequest, wire.InterruptRequest, wire.SettleRequest,
		wire.ShellRequest,
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

// TestLogNobodyReads closes the reading end of the log. SIGPIPE must not end boxd.
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
