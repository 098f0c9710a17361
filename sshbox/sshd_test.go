package sshbox

import (
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/sshdtest"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// sshd is an OpenSSH server on loopback, of this test's own.
type sshd struct{ *sshdtest.Server }

// startSSHD starts a server with lines added to its configuration. Where OpenSSH has none, the test is skipped.
func startSSHD(t testing.TB, lines ...string) *sshd {
	t.Helper()
	return &sshd{sshdtest.Start(t, lines...)}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// config is what it takes to log in.
func (s *sshd) config() DialConfig {
	return DialConfig{Address: s.Address, User: s.User, Signer: s.Key, HostKey: ssh.FixedHostKey(s.HostKey)}
}

// host logs in, and checks at the end that Close leaves nothing behind.
func (s *sshd) host(t testing.TB, change func(*DialConfig)) *host {
	t.Helper()
	c := s.config()
	if change != nil {
		change(&c)
	}
	c, err := c.withDefaults()
	noError(t, err)
	h, err := dialHost(t.Context(), c)
	noError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

// result is what a program printed and how it ended.
type result struct {
	stdout, stderr string
	status         shellbox.Status
	err            error
}

// finish reads a process to its end.
func finish(p shellbox.Process) (r result) {
	var wg sync.WaitGroup
	read := func(to *string, from io.Reader) {
		if from != nil {
			wg.Go(func() {
				b, _ := io.ReadAll(from)
				*to = string(b)
			})
		}
	}
	read(&r.stdout, p.Stdout())
	read(&r.stderr, p.Stderr())
	wg.Wait()
	r.status, r.err = p.Wait()
	p.Close()
	return r
}

func run(t testing.TB, h shellbox.Host, p shellbox.Program) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	proc, err := h.Start(ctx, p)
	noError(t, err)
	if p.Terminal == nil {
		proc.Stdin().Close()
	}
	r := finish(proc)
	noError(t, r.err)
	return r
}

func sh(script string) shellbox.Program { return shellbox.Program{Args: []string{"sh", "-c", script}} }

func execute(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
