//go:build linux

package main

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// TestRenew makes a box another one, as after its start from a checkpoint: it has another host key
// and another socket, it knows neither the owner nor the guests that it had, and its programs go
// on.
func TestRenew(t *testing.T) {
	w := &way{b: startBoxWith(t, []string{"-keep"}, nil)}
	former := w.connect(t)
	_, err := former.Start(t.Context(), hosttest.Sh("sleep 1000"))
	require.NoError(t, err)
	guest := newKey(t)
	key, err := former.AddGuest(t.Context(), guest.PublicKey())
	require.NoError(t, err)
	// A copy has no clients. And two would read the answers to claims from one stream here.
	require.NoError(t, former.Detach())
	require.NoError(t, former.Close())
	id, formerID, formerKey := w.b.id+"-copy", w.b.id, w.b.hostKey

	mine := newKey(t)
	claim := wire.NewRenewal(mine.PublicKey(), id)
	w.b.hostKey, err = w.b.make(claim)
	require.NoError(t, err)
	require.NotEqual(t, key.Marshal(), w.b.hostKey.Marshal())
	again, err := w.b.make(claim) // the first answer may have been lost
	require.NoError(t, err)
	require.Equal(t, w.b.hostKey.Marshal(), again.Marshal())
	_, err = net.Dial("unix", wire.SocketName(formerID))
	require.Error(t, err)
	w.b.id = id
	for name, signer := range map[string]ssh.Signer{"its former owner": w.b.key, "a guest": guest} {
		c, err := w.b.handshake(&ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(w.b.hostKey),
			Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}})
		if err == nil {
			c.Close()
		}
		require.Error(t, err, name)
	}
	c, err := w.b.handshake(&ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(formerKey),
		Auth: []ssh.AuthMethod{ssh.PublicKeys(mine)}})
	if err == nil {
		c.Close()
	}
	require.Error(t, err, "with its former host key")

	h := w.connect(t)
	kept, err := h.Kept(t.Context())
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.False(t, kept[0].Ended)
	changed, err := h.TakeIdentity(t.Context(), []string{"A=new", "PATH=" + os.Getenv("PATH")},
		time.Hour, true)
	require.NoError(t, err)
	require.Contains(t, changed, "A=new")
	require.False(t, slices.ContainsFunc(changed, func(kv string) bool {
		return strings.HasPrefix(kv, "PATH=")
	}), "it is as before")
	repeated, err := h.TakeIdentity(t.Context(), []string{"A=new", "PATH=" + os.Getenv("PATH")},
		time.Hour, true)
	require.NoError(t, err)
	require.Equal(t, changed, repeated, "the first answer may have been lost")
}
