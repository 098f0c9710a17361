package egress_test

import (
	"context"
	"crypto/rand"
	"net"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// newKey returns a key for Authority.
func newKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return key
}

// loaded is a program that has read the certificates, and then fetches at each line of its input,
// without another look at variables and files.
const loaded = `python3 -uc '
import ssl, sys, urllib.request as u
c = ssl.create_default_context()
p = u.build_opener(u.ProxyHandler(), u.HTTPSHandler(context=c))
print("loaded")
for line in sys.stdin:
  try: print(p.open("https://a.example.com/login", timeout=20).read().decode())
  except Exception as e: print("failed", e)'`

// TestFollow has three Exits with one key, one after the other, serve a program that goes on.
// The last one takes out of the box what the first one has put there.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := server(t)
	secret := egress.Secret{Env: "API_KEY", Prefix: "sk-",
		Hosts: []string{"https://a.example.com/login"},
		Value: func(context.Context) (string, error) { return "sk-real-value", nil }}
	for _, outward := range []bool{false, true} {
		box := boxtest.Container(t, sshbox.Config{Network: "none", Outward: outward,
			Env: []string{"GIT_SSL_CAINFO=mine"}})
		execute(t, box, "rm -rf /etc/chromium /etc/opt; mkdir -p /opt/java/x/lib/security; "+
			"printf '#!/bin/sh' >/usr/local/bin/chromium; chmod +x /usr/local/bin/chromium")
		const variables = "export -p | sed '/_=/d; /OLDPWD/d' | sort; ls -A /tmp"
		before, shell := execute(t, box, digests), execute(t, box, variables)
		key := newKey()
		attach := func(c egress.Config) (*egress.Exit, error) {
			c.Secrets = append(c.Secrets, secret)
			return gateTo(t, s, c).Attach(t.Context(), box, egress.Authority(key))
		}
		first, err := attach(egress.Config{})
		require.NoError(t, err)
		placeholder := execute(t, box, "echo $API_KEY; cd /tmp; false || true")
		require.Contains(t, placeholder, "sk-sandshell")
		program := another(t, box)
		asks := func(input, want string) {
			t.Helper()
			res, err := program.Input(t.Context(), input+"\n")
			require.NoError(t, err)
			require.Contains(t, res.Output, want)
		}
		res, err := program.Execute(t.Context(), loaded)
		require.NoError(t, err)
		require.Contains(t, res.Output, "loaded")
		asks("1", "false")
		changed, set := execute(t, box, digests), execute(t, box, variables)
		_, err = attach(egress.Config{})
		require.ErrorIs(t, err, egress.ErrServed)
		_, err = gateTo(t, s, egress.Config{}).Attach(t.Context(), box,
			egress.Authority(newKey()))
		require.ErrorIs(t, err, egress.ErrServed)
		asks("2", "false")

		// Nobody serves.
		select {
		case <-first.Done():
			require.Fail(t, "it serves")
		default:
		}
		require.NoError(t, first.Detach())
		<-first.Done()
		require.NoError(t, first.Close())
		asks("3", "failed")

		// A program of the box has the port. That is no other Exit.
		squat := another(t, box)
		res, err = squat.Execute(t.Context(), `python3 -uc '
import socket
s = socket.create_server(("127.0.0.1", 3128)); print("listens"); input()'`)
		require.NoError(t, err)
		require.Contains(t, res.Output, "listens")
		_, err = attach(egress.Config{})
		require.ErrorContains(t, err, "a program in the box listens on port 3128")
		require.NotErrorIs(t, err, egress.ErrServed)
		_, err = squat.Interrupt(t.Context())
		require.NoError(t, err)

		// The main session is at work, and keeps $? and its variables.
		execute(t, box, "export NO_PROXY=changed")
		_, err = box.Execute(t.Context(), "read x; (exit 7)", sandbox.Yield(1))
		require.NoError(t, err)
		second, err := attach(egress.Config{})
		require.NoError(t, err)
		asks("4", "false")
		require.Equal(t, changed, execute(t, another(t, box), digests))
		res, err = box.Input(t.Context(), "\n")
		require.NoError(t, err)
		require.Equal(t, 7, res.ExitCode)
		execute(t, box, "[ $NO_PROXY = changed ]; export NO_PROXY=localhost,127.0.0.1,::1")
		require.Equal(t, set, execute(t, box, variables))
		require.NoError(t, second.Detach())

		// The third one has another secret. It undoes all.
		third, err := attach(egress.Config{Secrets: []egress.Secret{{Env: "NEW_KEY",
			Hosts: secret.Hosts, Value: secret.Value}}})
		require.NoError(t, err)
		require.Contains(t, execute(t, box, "echo $NEW_KEY"), "sandshell")
		require.Contains(t, placeholder, execute(t, box, "echo $API_KEY"))
		asks("5", "false")
		require.Equal(t, changed, execute(t, box, digests))
		require.NoError(t, third.Detach())

		// The next one is of this process, and does not look again.
		third, err = gateTo(t, s, egress.Config{Secrets: []egress.Secret{secret}}).Attach(
			t.Context(), box, egress.Authority(key), egress.Prepared(third))
		require.NoError(t, err)
		asks("6", "false")
		require.NoError(t, third.Close())
		require.Equal(t, before, execute(t, box, digests))
		require.Equal(t, shell, execute(t, box, "cd; "+variables))
		asks("7", "failed")
	}
}

// another returns another session.
func another(t *testing.T, box sandbox.Sandbox) sandbox.Session {
	t.Helper()
	session, err := box.Open(t.Context())
	require.NoError(t, err)
	return session
}

// TestFollowRefused shows where there can be no Authority, and that a directory of another user
// is not taken over.
func TestFollowRefused(t *testing.T) {
	t.Parallel()
	s := server(t)
	local := boxtest.Local(t)
	g := gateTo(t, s, egress.Config{Advisory: true})
	_, err := g.Attach(t.Context(), local, egress.Authority(make([]byte, 31)))
	require.EqualError(t, err, "egress: attach: Authority: the key has 31 bytes: give at least 32 "+
		"secret bytes")
	_, err = g.Attach(t.Context(), local, egress.Authority(newKey()))
	require.ErrorContains(t, err, "other programs share the box's loopback")
	open := boxtest.Container(t, sshbox.Config{})
	for range 2 {
		_, err = g.Attach(t.Context(), open, egress.Authority(newKey()))
		require.ErrorContains(t, err, "other programs share the box's loopback")
		_, err = gateTo(t, s, egress.Config{}).Attach(t.Context(), open,
			egress.Authority(newKey()))
		require.ErrorAs(t, err, new(*egress.OpenNetworkError))
	}
	require.Empty(t, execute(t, open, "ls -A /tmp; echo $HTTPS_PROXY"))

	box := boxtest.Container(t, sshbox.Config{Network: "none"})
	key := newKey()
	exit, err := g.Attach(t.Context(), box, egress.Authority(key))
	require.NoError(t, err)
	dir := path.Dir(execute(t, box, "echo $SSL_CERT_FILE"))
	require.True(t, strings.HasPrefix(dir, "/tmp/.sandshell-"), dir)
	require.NoError(t, exit.Close())
	execute(t, box, "mkdir "+dir+"; echo 'touch /tmp/mine' >"+dir+"/env; chown -R 1000 "+dir)
	exit, err = g.Attach(t.Context(), box, egress.Authority(key))
	require.NoError(t, err)
	require.Equal(t, "/var"+dir, path.Dir(execute(t, box, "echo $SSL_CERT_FILE")))
	require.Contains(t, execute(t, box, fetch), "hello from")
	require.NoError(t, exit.Detach())
	exit, err = g.Attach(t.Context(), box, egress.Authority(key))
	require.NoError(t, err)
	require.Equal(t, "/var"+dir, path.Dir(execute(t, box, "echo $SSL_CERT_FILE")))
	require.NoError(t, exit.Close())
	require.Equal(t, path.Base(dir), execute(t, box, "ls -A /tmp"))
	_, err = net.Dial("tcp", "127.0.0.1:3128")
	require.Error(t, err)
}
