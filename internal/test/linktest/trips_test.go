//go:build linux

package linktest_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/linktest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// TestRoundTrips counts the round trips that calls take to a machine with boxd. Not even the relay
// goes by a clock: it counts which piece of data has waited for which. What goes on beside a call
// (looks at its processes) may make some of its turns longer, but none shorter. So the least of
// some turns counts.
func TestRoundTrips(t *testing.T) {
	ctx := t.Context()
	server := sshdtest.Start(t)
	config := sshbox.DialConfig{Address: server.Address, User: server.User, Signer: server.Key,
		HostKey: ssh.FixedHostKey(server.HostKey), Boxd: filepath.Join(server.Dir, "boxd")}
	near, err := sshbox.Dial(ctx, config) // brings boxd
	require.NoError(t, err)
	require.NoError(t, near.Close())
	roundTrip := 40 * time.Millisecond
	newLink := func() *linktest.Link {
		return linktest.Start(t, linktest.Config{Server: server.Address, RoundTrip: roundTrip})
	}
	link := newLink()
	// The questions of KeepAlive go by a clock: on a busy machine New takes longer than 2 s.
	config.KeepAlive = -1
	dial := func() *sshbox.SSHBox {
		config.Address = link.Address
		box, err := sshbox.Dial(ctx, config)
		require.NoError(t, err)
		return box
	}
	box := dial()
	defer box.Close()
	program, why := box.Boxd()
	require.NotEmpty(t, program, why)

	dir := t.TempDir()
	small := filepath.Join(dir, "small")
	require.NoError(t, os.WriteFile(small, make([]byte, 1<<10), 0o600))
	var opened sandbox.Session
	var made *sshbox.SSHBox
	// A login is counted on a link that nothing else uses, because what another connection says
	// meanwhile would count. Each turn has a longer link: where sshd takes longer than a round trip
	// from its version to its offer of algorithms, the client's offer is there before, and counts.
	ownLink := func() {
		roundTrip = min(2*roundTrip, 2*time.Second)
		link = newLink()
	}
	bare := &ssh.ClientConfig{User: server.User, HostKeyCallback: config.HostKey,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(server.Key)}}
	for _, c := range []struct {
		name   string
		trips  int
		before func()
		call   func()
		after  func()
	}{
		{name: "Execute", trips: 1, call: func() {
			r, err := box.Execute(ctx, ":")
			require.NoError(t, err)
			require.Zero(t, r.ExitCode)
		}},
		{name: "ExecuteFails", trips: 1, call: func() {
			r, err := box.Execute(ctx, "(exit 3)")
			require.NoError(t, err)
			require.Equal(t, 3, r.ExitCode)
		}},
		{name: "Input", trips: 1, before: func() {
			r, err := box.Execute(ctx, "read x")
			require.NoError(t, err)
			require.Equal(t, sandbox.Waiting, r.State)
		}, call: func() {
			r, err := box.Input(ctx, "a\n")
			require.NoError(t, err)
			require.Equal(t, sandbox.Exited, r.State)
			require.Zero(t, r.Unread)
		}},
		{name: "Open", trips: 1, call: func() {
			opened, err = box.Open(ctx)
			require.NoError(t, err)
		}, after: func() { opened.Close() }},
		{name: "Stat", trips: 1, call: func() {
			_, err := box.Files().Stat(ctx, small)
			require.NoError(t, err)
		}},
		{name: "ReadFile", trips: 1, call: func() {
			_, err := box.Files().ReadFile(ctx, small, 0)
			require.NoError(t, err)
		}},
		{name: "WriteFile", trips: 1, call: func() {
			require.NoError(t, box.Files().WriteFile(ctx, filepath.Join(dir, "written"),
				make([]byte, 1<<10), 0o600))
		}},
		{name: "ReadDir", trips: 1, call: func() {
			_, err := box.Files().ReadDir(ctx, dir)
			require.NoError(t, err)
		}},
		{name: "CopyTo", trips: 1, call: func() {
			require.NoError(t, box.CopyTo(ctx, small, filepath.Join(dir, "copied")))
		}},
		{name: "Bare", trips: tripsOfNew - 1, before: ownLink, call: func() {
			login, err := ssh.Dial("tcp", link.Address, bare)
			require.NoError(t, err)
			defer login.Close()
			session, err := login.NewSession()
			require.NoError(t, err)
			require.NoError(t, session.Run("true"))
		}},
		{name: "New", trips: tripsOfNew, before: ownLink, call: func() { made = dial() },
			after: func() { made.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			least := 0
			for turn := range 20 {
				if c.before != nil {
					c.before()
				}
				before := link.RoundTrips()
				c.call()
				trips := link.RoundTrips() - before
				if c.after != nil {
					c.after()
				}
				if turn == 0 { // it prepares what the others find: a file server
					continue
				}
				if least == 0 || trips < least {
					least = trips
				}
				if least <= c.trips {
					break
				}
			}
			t.Logf("%d round trips", least)
			require.LessOrEqual(t, least, c.trips)
		})
	}
}

// tripsOfNew are the round trips of sshbox.Dial. Nine are x/crypto's for any login and a command:
// TCP, versions, keys, the service, "none", the question about the key, the key, a channel, the
// command. Here the command is boxd start, with the claim and its answer. The tenth is Open.
const tripsOfNew = 10
