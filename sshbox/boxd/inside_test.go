//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/wire"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// inside runs this test's binary in the box's namespaces, as a child of boxd, which misuses the socket in the way of that name.
func (b *box) inside(how string) string {
	b.t.Helper()
	out, errs, err := runs(b.t, b.owner(), fmt.Sprintf("%s=%s exec '%s' -test.run '^TestInside$' %s", insideAs, how, executable(b.t), b.id))
	if err != nil {
		b.t.Errorf("%s: %v\n%s%s", how, err, out, errs)
	}
	return out
}

const insideAs = "SANDSHELL_TEST_INSIDE"

// TestInside is what inside runs.
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
		case "pipe": // hands over one that nobody reads
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

// TestAuthorizeFromInside tries to become the owner by join from inside: as a child of boxd, as an orphan, and in a nested pid namespace.
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

// TestOwnerAdopts: a box that has an owner is nobody else's to adopt.
func TestOwnerAdopts(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	if answer := b.say(wire.Adopt + string(ssh.MarshalAuthorizedKey(newKey(t).PublicKey()))); !strings.HasPrefix(answer, wire.Refused) {
		t.Errorf("it answers %q", answer)
	}
	w.works()
	b.logged("the box has an owner")
}

// TestOwnerReplaced makes another key the owner's, from outside.
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
