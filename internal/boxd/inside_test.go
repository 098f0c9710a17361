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

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// inside runs this test's binary in the box's namespaces, as a child of boxd. The binary misuses
// the socket in the way that the name says.
func (b *box) inside(how string) string {
	b.t.Helper()
	out, errs, err := runs(b.t, b.owner(), fmt.Sprintf(
		"%s=%s exec '%s' -test.run '^TestInside$' %s", insideAs, how, executable(b.t), b.id))
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
		case "pipe": // hands over a pipe that nobody reads
			c.WriteMsgUnix([]byte{0}, unix.UnixRights(pipes[0], pipes[1]), nil)
		case "many":
			fds := make([]int, 200)
			c.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
		case "abandon":
			c.Close()
		}
	}
	for _, c := range held { // boxd hangs up on each of them
		c.SetReadDeadline(time.Now().Add(testenv.Limit))
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
	b.logged("it comes from inside the container")
	if n := strings.Count(b.log.String(), "\n"); n > 300 {
		t.Errorf("%d lines are logged", n)
	}
	client, err := b.login(b.key)
	if err != nil {
		t.Fatal("boxd refuses other logins: ", err)
	}
	client.Close()
	b.closeAllBut(w.client)
	b.settled(before)
}

// TestClaimByJoin tries to become the owner by join. No process that joins can, not even from
// outside, because a program of the box may trace a join and act as it.
func TestClaimByJoin(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	stranger := newKey(t)
	for _, adopts := range []bool{false, true} {
		claim := wire.NewClaim(stranger.PublicKey(), adopts)
		if _, answers, _ := claim.ParseAnswer(b.say(claim.String())); answers {
			t.Error("a join has made somebody the owner")
		}
	}
	w.works()
	if _, err := b.login(stranger); err == nil {
		t.Error("the box has another owner")
	}
}

// TestClaims writes invalid claims, and claims that boxd refuses, to boxd's standard input.
func TestClaims(t *testing.T) {
	b := startBox(t)
	w := b.witness()
	for _, text := range []string{
		"\n", "ls\n", "sandshell authorize \n", "sandshell authorize nonce\n",
		strings.Repeat("x", 3*wire.ClaimMax) + "\n",
		"sandshell authorize nonce " + strings.Repeat("x", wire.ClaimMax) + "\n",
		string(randomBytes(1000)) + "\n",
	} {
		io.WriteString(b.in, text)
	}
	bad := wire.Claim{Nonce: "N", Key: "ssh-ed25519 AAAA"}
	io.WriteString(b.in, bad.String())
	if _, err := b.claim(newKey(t), true); err == nil ||
		!strings.Contains(err.Error(), "has an owner") {
		t.Error("a box that has an owner is nobody else's to adopt: ", err)
	}
	w.works()
	b.logged("it is no claim")
	b.logged("a claim: ssh: ")
	b.logged("the box has an owner")
}

// boxd's standard input is for claims, so the input of the image's command is empty. The command
// shares boxd's output, and may print anything there.
func TestImageCommand(t *testing.T) {
	b := startBoxWith(t, nil, []string{"sh", "-c", "readlink /proc/self/fd/0 >in; printf " +
		"'sandshell answer forged'; exec sleep 1000"})
	b.witness().works()
	waitFor(t, "the image's command", func() bool {
		in, _ := os.ReadFile(b.dir + "/in")
		return string(in) == "/dev/null\n"
	})
	if _, err := b.claim(newKey(t), false); err != nil {
		t.Error(err)
	}
}

// TestForgedAnswer makes answers without the nonce, as a program could that has seen boxd's output.
func TestForgedAnswer(t *testing.T) {
	claim := wire.NewClaim(newKey(t).PublicKey(), false)
	own, other := newKey(t).PublicKey(), newKey(t).PublicKey()
	line := claim.Accept(own)
	if key, answers, err := claim.ParseAnswer(line); !answers || err != nil ||
		string(key.Marshal()) != string(own.Marshal()) {
		t.Errorf("boxd's own answer: %v, %v, %v", key, answers, err)
	}
	text := func(k ssh.PublicKey) string {
		return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k)))
	}
	for _, forged := range []string{
		strings.Replace(line, text(own), text(other), 1),
		strings.Replace(line, "host-key", "refused", 1),
		wire.NewClaim(newKey(t).PublicKey(), false).Accept(other), "sandshell answer", "",
		strings.ToUpper(line),
	} {
		if _, answers, _ := claim.ParseAnswer(forged); answers {
			t.Errorf("it is taken for an answer: %q", forged)
		}
	}
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
