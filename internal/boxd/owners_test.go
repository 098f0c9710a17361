//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// joinAs makes a new key an owner's beside others, and returns a connection of it.
func (b *box) joinAs() (ssh.Signer, *ssh.Client) {
	b.t.Helper()
	key := newKey(b.t)
	_, err := b.make(wire.NewJoin(key.PublicKey()))
	require.NoError(b.t, err)
	client, err := b.login(key)
	require.NoError(b.t, err)
	return key, client
}

// A heldProgram is a channel to a program.
type heldProgram struct {
	ssh.Channel
	said chan *ssh.Request
}

func (b *box) openProgram(client *ssh.Client, open *wire.Open) *heldProgram {
	b.t.Helper()
	ch, requests, err := client.OpenChannel(wire.ProgramChannel, nil)
	require.NoError(b.t, err)
	require.NoError(b.t, wire.WriteOpen(ch, open))
	p := &heldProgram{ch, make(chan *ssh.Request, 100)}
	go func() {
		defer close(p.said)
		for r := range requests {
			p.said <- r
		}
	}()
	return p
}

// await returns the payload of the next request of one of these kinds.
func (p *heldProgram) await(t *testing.T, kinds ...string) (kind string, payload []byte) {
	t.Helper()
	limit := time.After(testenv.Limit)
	for {
		select {
		case r, more := <-p.said:
			if !more {
				t.Fatal("the channel has ended before ", kinds)
			}
			for _, kind := range kinds {
				if r.Type == kind {
					return kind, r.Payload
				}
			}
		case <-limit:
			t.Fatal("nothing of ", kinds)
		}
	}
}

func (p *heldProgram) failed(t *testing.T, errno syscall.Errno) {
	t.Helper()
	kind, payload := p.await(t, wire.StateRequest, wire.FailedRequest)
	require.Equal(t, wire.FailedRequest, kind)
	require.ErrorIs(t, wire.Decode(payload), errno)
}

func cat(name string) *wire.Start {
	return &wire.Start{Args: [][]byte{[]byte("cat")}, Rows: 24, Cols: 80, Name: name}
}

// TestOwners has several owners: each has programs and listeners of its own, and turns at those
// with a note.
func TestOwners(t *testing.T) {
	b := startBox(t)
	before := b.steady()
	first := b.owner()
	_, second := b.joinAs()
	if out, _, err := runs(t, first, "echo on"); out != "on\n" || err != nil {
		t.Fatal("the first owner has lost the box: ", out, err)
	}
	shared := b.openProgram(first, &wire.Open{ID: "shared", Start: cat("session-1")})
	shared.await(t, wire.StateRequest)
	own := b.openProgram(first, &wire.Open{ID: "own", Start: cat("")})
	own.await(t, wire.StateRequest)
	take := func(id string) *heldProgram {
		return b.openProgram(second, &wire.Open{ID: id, Stdout: -1, Take: true})
	}
	take("own").failed(t, syscall.ENOENT)
	take("none").failed(t, syscall.ENOENT)
	require.NoError(t, wire.Send(shared, wire.NoteRequest, []byte("a note")))
	listed := func() (programs []wire.Program) {
		ok, list, err := second.SendRequest(wire.ListRequest, true, []byte("true"))
		require.True(t, ok)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(list, &programs))
		return programs
	}
	waitFor(t, "the note is there", func() bool { return len(listed()) == 1 })
	require.Equal(t, "a note", string(listed()[0].Note))
	require.Equal(t, "session-1", listed()[0].Name)

	// names
	b.openProgram(second, &wire.Open{ID: "other", Start: cat("session-1")}).failed(t,
		syscall.EEXIST)
	next := cat("session-1")
	next.New = true
	_, payload := b.openProgram(second, &wire.Open{ID: "other", Start: next}).await(t,
		wire.FailedRequest)
	require.Contains(t, string(payload), `"Next":2`)

	// A program that has ended and was not released says so: its id is free.
	ended := b.openProgram(second, &wire.Open{ID: "ended", Start: &wire.Start{
		Args: [][]byte{[]byte("true")}}})
	ended.await(t, wire.ExitRequest)
	_, list, err := second.SendRequest(wire.ListRequest, true, nil)
	require.NoError(t, err)
	var programs []wire.Program
	require.NoError(t, json.Unmarshal(list, &programs))
	require.Len(t, programs, 1)
	require.True(t, programs[0].Ended)

	// What an owner wants to hold says nothing of others' programs.
	ok, _, err := second.SendRequest(wire.HoldRequest, true, []byte("[]"))
	require.True(t, ok)
	require.NoError(t, err)
	_, err = shared.Write([]byte("hello\n"))
	require.NoError(t, err)
	text := make([]byte, len("hello\n"))
	_, err = io.ReadFull(shared, text)
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(text))

	// turns
	taken := take("shared")
	_, payload = shared.await(t, wire.WantedRequest)
	_, err = shared.SendRequest(wire.BusyRequest, false, payload)
	require.NoError(t, err)
	taken.failed(t, syscall.EBUSY)
	b.openProgram(second, &wire.Open{ID: "shared"}).failed(t, syscall.EBUSY)
	taken = take("shared")
	shared.await(t, wire.WantedRequest)
	_, err = shared.SendRequest(wire.BusyRequest, false, ssh.Marshal(&wire.Wanted{Number: 1 << 60}))
	require.NoError(t, err)
	_, err = shared.SendRequest(wire.YieldRequest, false, ssh.Marshal(&wire.Yield{Idle: true}))
	require.NoError(t, err)
	taken.await(t, wire.CleanRequest)
	taken.await(t, wire.StateRequest)
	shared.SendRequest(wire.ReleaseRequest, false, nil) // too late: it is the other owner's
	b.openProgram(first, &wire.Open{ID: "shared"}).failed(t, syscall.EBUSY)

	// An owner that is gone has no turn, and nothing of its own is left.
	second.Close()
	again := b.openProgram(first, &wire.Open{ID: "shared", Stdout: -1, Take: true})
	kind, _ := again.await(t, wire.StateRequest, wire.CleanRequest, wire.FailedRequest)
	require.Equal(t, wire.StateRequest, kind)
	_, third := b.joinAs()
	b.openProgram(third, &wire.Open{ID: "third", Start: cat("")}).await(t, wire.StateRequest)
	ok, _, err = third.SendRequest(wire.LeaveRequest, true, nil)
	require.True(t, ok || errors.Is(err, io.EOF))
	third.Wait()
	first.SendRequest(wire.HoldRequest, true, []byte("[]"))
	b.closeAllBut(nil)
	b.settled(before)
}

// TestManyOwners has as many owners as a box may have. One more takes the place of one that is
// away, or is refused. Guests and programs of the box cannot become owners.
func TestManyOwners(t *testing.T) {
	b := startBox(t)
	first := b.owner()
	var last *ssh.Client
	var lastKey ssh.Signer
	for range maxOwners - 1 {
		lastKey, last = b.joinAs()
	}
	_, err := b.make(wire.NewJoin(newKey(t).PublicKey()))
	require.ErrorContains(t, err, errManyOwners.Error())
	last.Close()
	waitFor(t, "boxd has noticed", func() bool {
		_, err := b.make(wire.NewJoin(newKey(t).PublicKey()))
		return err == nil
	})
	_, err = b.login(lastKey)
	require.Error(t, err, "another one has its place")
	if out, _, err := runs(t, first, "echo on"); out != "on\n" || err != nil {
		t.Fatal(out, err)
	}
	guest := b.guest()
	for _, kind := range []string{wire.LeaveRequest, wire.HoldRequest, wire.ListRequest} {
		ok, _, err := guest.SendRequest(kind, true, []byte("[]"))
		require.False(t, ok)
		require.NoError(t, err)
	}
	stranger := newKey(t)
	require.NotContains(t, b.say(wire.NewJoin(stranger.PublicKey()).String()), "answer")
	_, err = b.login(stranger)
	require.Error(t, err)

	// Who takes the box over has it alone.
	b.key = newKey(t)
	b.authorize()
	require.Error(t, first.Wait())
	out, _, err := runs(t, b.owner(), "echo alone")
	require.NoError(t, err)
	require.Equal(t, "alone\n", out)
}

// TestAwayOwner checks that an owner who stays away is dropped, if there is another one.
func TestAwayOwner(t *testing.T) {
	s := silentServer(t)
	s.linger = 20 * time.Millisecond
	count := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.owners)
	}
	for i := range 3 {
		require.NoError(t, s.addOwner(fmt.Sprint(i), wire.Claim{Joins: i > 0}))
	}
	waitFor(t, "one owner is left", func() bool { return count() == 1 })
	require.Error(t, s.addOwner("another", wire.Claim{Adopts: true}))
}

// TestAwayAgain checks that the time of an owner who was here between two looks begins anew.
func TestAwayAgain(t *testing.T) {
	s := silentServer(t)
	s.linger = time.Hour
	require.NoError(t, s.addOwner("first", wire.Claim{}))
	require.NoError(t, s.addOwner("second", wire.Claim{Joins: true}))
	second := s.owners["second"]
	c := &conn{s: s, role: ownerRole, key: "second"}
	require.True(t, s.addConn(c))
	s.removeConn(c)
	s.watchAway(second, awayLooks, 0)
	require.Contains(t, s.owners, "second")
	s.watchAway(second, awayLooks, second.logins)
	require.NotContains(t, s.owners, "second")
}

// TestDeafOwner has an owner that takes nothing of what boxd sends: its process is stopped. Another
// one ends a program that it uses, and goes on using the box.
func TestDeafOwner(t *testing.T) {
	b := startBox(t)
	first := b.owner()
	key := newKey(t)
	_, err := b.make(wire.NewJoin(key.PublicKey()))
	require.NoError(t, err)
	conn := &deafConn{joined: b.dial()}
	raw, channels, requests, err := ssh.NewClientConn(conn, "box", &ssh.ClientConfig{
		User: "anyone", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: ssh.FixedHostKey(b.hostKey)})
	require.NoError(t, err)
	deaf := ssh.NewClient(raw, channels, requests)
	defer deaf.Close()
	b.openProgram(deaf, &wire.Open{ID: "shared", Start: cat("session-1")}).await(t,
		wire.StateRequest)
	var floods []ssh.Channel
	for range 4 { // each is one ring, and the pipe takes two
		flood, _, err := deaf.OpenChannel(wire.ProgramChannel, nil)
		require.NoError(t, err)
		floods = append(floods, flood)
	}
	conn.mu.Lock()
	defer conn.mu.Unlock()
	for i, flood := range floods {
		require.NoError(t, wire.WriteOpen(flood, &wire.Open{ID: fmt.Sprint("flood", i),
			Start: &wire.Start{Args: [][]byte{[]byte("yes")}}}))
	}
	waitFor(t, "its pipe is full", conn.full)
	forgotten := make(chan bool, 1)
	go func() {
		ok, _, err := first.SendRequest(wire.ForgetRequest, true, []byte("shared"))
		forgotten <- ok && err == nil
	}()
	select {
	case ok := <-forgotten:
		require.True(t, ok)
	case <-time.After(testenv.Limit):
		t.Fatal("boxd waits for the owner that takes nothing")
	}
	out, _, err := runs(t, first, "echo on")
	require.NoError(t, err)
	require.Equal(t, "on\n", out)
}

// TestAdoptedBySeveral has two owners find out that boxd was started again: each may adopt the box.
// One that connects keeps it from the others.
func TestAdoptedBySeveral(t *testing.T) {
	s := silentServer(t)
	s.linger = time.Hour
	adopts := wire.Claim{Adopts: true}
	require.NoError(t, s.addOwner("first", adopts))
	require.NoError(t, s.addOwner("second", adopts))
	c := &conn{s: s, role: ownerRole, key: "second"}
	require.True(t, s.addConn(c))
	s.removeConn(c)
	require.Error(t, s.addOwner("third", adopts))
	require.NoError(t, s.addOwner("second", adopts))
}
