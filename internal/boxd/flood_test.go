//go:build linux

package main

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// In TestUnreadAnswers, a guest reads nothing until boxd can write no more to it, and then sends
// more requests.
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
			&ssh.ClientConfig{Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
				HostKeyCallback: ssh.FixedHostKey(b.hostKey)})
		if err != nil {
			t.Fatal(err)
		}
		client := ssh.NewClient(conn, channels, requests)
		s := newSession(t, client)
		s.Stdout = io.Discard
		deaf.mu.Lock()
		go s.Start("yes") // the guest does not read the answer
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

// A deafConn is a connection that is not read while mu is held.
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

// full reports whether the pipe from boxd is full.
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

// TestManyCallers opens and abandons more connections from outside than boxd keeps. Most of them
// send nothing.
func TestManyCallers(t *testing.T) {
	// None times out, however long it takes to start them all.
	b := startBox(t, loginLimitIn+"=1h")
	w := b.witness()
	before := b.steady()
	var silent []*joined
	for i := range 2 * maxPending {
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
	b.logged("too many connections do not log in")
	for _, c := range silent {
		c.Close()
	}
	b.settled(before)
}
