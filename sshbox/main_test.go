package sshbox

import (
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/sshhost"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"golang.org/x/crypto/ssh"
)

// TestMain checks that the tests leave no goroutine and no container behind.
func TestMain(m *testing.M) { dockertest.Main(m) }

var (
	run         = hosttest.Run
	finish      = hosttest.Finish
	sh          = hosttest.Sh
	waitFor     = hosttest.WaitFor
	newKey      = sshdtest.NewKey
	listen      = hosttest.Listen
	freeAddress = hosttest.FreeAddress
	execute     = hosttest.Execute
)

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An sshd is an OpenSSH server that the test starts. Its methods make DialConfigs that reach it.
type sshd struct{ *sshdtest.Server }

func startSSHD(t testing.TB, lines ...string) *sshd {
	t.Helper()
	return &sshd{sshdtest.Start(t, lines...)}
}

// config returns a DialConfig that logs in, without boxd.
func (s *sshd) config() DialConfig {
	return DialConfig{Address: s.Address, User: s.User, Signer: s.Key,
		HostKey: ssh.FixedHostKey(s.HostKey), Boxd: NoBoxd}
}

// withBoxd returns a DialConfig that logs in, and copies boxd to a directory that goes with the
// server.
func (s *sshd) withBoxd() DialConfig {
	c := s.config()
	c.Boxd = filepath.Join(s.Dir, "boxd")
	return c
}

// host logs in as Dial does. It closes the connections when the test ends.
func (s *sshd) host(t testing.TB, change func(*DialConfig)) *sshhost.Host {
	t.Helper()
	c := s.config()
	if change != nil {
		change(&c)
	}
	c, err := c.withDefaults()
	noError(t, err)
	h, err := c.logIn(t.Context())
	noError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}
