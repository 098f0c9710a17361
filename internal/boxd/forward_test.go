//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestForward(t *testing.T) {
	b := startBox(t)
	before := b.steady()
	client := b.guest()
	socket := filepath.Join(b.dir, "forwarded")
	for name, listen := range map[string]func() (net.Listener, error){
		"tcp":  func() (net.Listener, error) { return client.Listen("tcp", "127.0.0.1:0") },
		"all":  func() (net.Listener, error) { return client.Listen("tcp", "0.0.0.0:0") },
		"unix": func() (net.Listener, error) { return client.ListenUnix(socket) },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := listen()
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go answer(l)
			network, address := l.Addr().Network(), l.Addr().String()
			if name == "all" {
				address = strings.Replace(address, "0.0.0.0", "127.0.0.1", 1)
			}
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					c, err := net.Dial(network, address)
					if err == nil {
						err = asks(c, randomBytes(i*10000))
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			waitFor(t, "it listens no more", func() bool {
				c, err := net.Dial(network, address)
				if err == nil {
					c.Close()
				}
				return err != nil
			})
			// It can listen there again. The end of the connection ends this one.
			if again, err := listen(); err != nil {
				t.Error(err)
			} else {
				go answer(again)
			}
		})
	}
	client.Close()
	waitFor(t, "the socket is gone", func() bool {
		_, err := os.Lstat(socket)
		return os.IsNotExist(err)
	})
	b.settled(before)
}

func TestForwardRequests(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	type path struct{ Path string }
	ask := func(kind string, payload any) (bool, uint32) {
		t.Helper()
		ok, reply, err := client.SendRequest(kind, true, ssh.Marshal(payload))
		if err != nil {
			t.Fatal(err)
		}
		var port struct{ Port uint32 }
		ssh.Unmarshal(reply, &port)
		return ok, port.Port
	}
	for _, where := range []string{"", "localhost", "127.0.0.1", "*"} {
		listensAt(t, ask, where)
	}
	if ok, _ := ask("tcpip-forward", &forwardAddress{"127.0.0.1", 70000}); ok {
		t.Error("there is no such port")
	}
	if ok, _ := ask("tcpip-forward", &forwardAddress{"192.0.2.1", 0}); ok {
		t.Error("that is not our address")
	}
	for _, kind := range []string{"tcpip-forward", "streamlocal-forward@openssh.com"} {
		for _, kind := range []string{kind, "cancel-" + kind} {
			if ok, _, err := client.SendRequest(kind, true, []byte{1, 2}); ok || err != nil {
				t.Error(kind, ok, err)
			}
		}
	}
	socket := filepath.Join(b.dir, "s")
	if ok, _ := ask("streamlocal-forward@openssh.com", &path{socket}); !ok {
		t.Fatal("streamlocal-forward")
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if ok, _ := ask("streamlocal-forward@openssh.com", &path{socket}); ok {
		t.Error("twice")
	}
	if ok, _ := ask("cancel-streamlocal-forward@openssh.com", &path{socket}); !ok {
		t.Error("not cancelled")
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Error(err)
	}
	n := 0
	for ; n <= maxListeners; n++ {
		if ok, _ := ask("streamlocal-forward@openssh.com", &path{fmt.Sprint("many", n)}); !ok {
			break
		}
	}
	if n != maxListeners {
		t.Errorf("%d sockets are listened on", n)
	}
}

// A forwardAddress is the payload of tcpip-forward (RFC 4254, section 7.1).
type forwardAddress struct {
	Address string
	Port    uint32
}

// listensAt makes boxd listen at an address on a port of its choice, once.
func listensAt(t *testing.T, ask func(kind string, payload any) (bool, uint32), where string) {
	ok, port := ask("tcpip-forward", &forwardAddress{where, 0})
	if !ok || port == 0 {
		t.Fatalf("%q: %v, %d", where, ok, port)
	}
	if ok, _ := ask("tcpip-forward", &forwardAddress{where, port}); ok {
		t.Errorf("%q: twice", where)
	}
	c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Error(err)
	} else { // this client has no listener, and refuses the channel
		if rest, _ := io.ReadAll(c); len(rest) > 0 {
			t.Errorf("%q", rest)
		}
		c.Close()
	}
	if ok, _ := ask("cancel-tcpip-forward", &forwardAddress{where, port}); !ok {
		t.Errorf("%q: not cancelled", where)
	}
	if ok, _ := ask("cancel-tcpip-forward", &forwardAddress{where, port}); ok {
		t.Errorf("%q: cancelled twice", where)
	}
}

// A client asks boxd to listen, and opens a channel without waiting for the answer. boxd listens
// before it serves the channel.
func TestForwardBeforeChannel(t *testing.T) {
	client := startBox(t).guest()
	dir := t.TempDir()
	for round := range 50 {
		var socket string
		for n := range 10 {
			socket = filepath.Join(dir, fmt.Sprint(round, "-", n))
			if _, _, err := client.SendRequest("streamlocal-forward@openssh.com", false,
				ssh.Marshal(struct{ Path string }{socket})); err != nil {
				t.Fatal(err)
			}
		}
		ch, requests, err := client.OpenChannel("direct-streamlocal@openssh.com",
			ssh.Marshal(struct {
				Path, From string
				Port       uint32
			}{Path: socket}))
		if err != nil {
			t.Fatal(err)
		}
		go ssh.DiscardRequests(requests)
		ch.Close()
	}
}
