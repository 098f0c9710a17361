// Package hosttest runs programs on a shellbox.Host for the tests of hosts.
package hosttest

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/stretchr/testify/require"
)

// A Result is what a program printed and how it ended.
type Result struct {
	Stdout, Stderr string
	Status         shellbox.Status
	Err            error
}

// Finish reads a process to its end.
func Finish(p shellbox.Process) (r Result) {
	var wg sync.WaitGroup
	read := func(to *string, from io.Reader) {
		if from != nil {
			wg.Go(func() {
				b, _ := io.ReadAll(from)
				*to = string(b)
			})
		}
	}
	read(&r.Stdout, p.Stdout())
	read(&r.Stderr, p.Stderr())
	wg.Wait()
	r.Status, r.Err = p.Wait()
	p.Close()
	return r
}

// Run runs a program to its end, with no input.
func Run(t testing.TB, h shellbox.Host, p shellbox.Program) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	proc, err := h.Start(ctx, p)
	require.NoError(t, err)
	if p.Terminal == nil {
		proc.Stdin().Close()
	}
	r := Finish(proc)
	require.NoError(t, r.Err)
	return r
}

// Sh returns a program that runs a script with sh.
func Sh(script string) shellbox.Program {
	return shellbox.Program{Args: []string{"sh", "-c", script}}
}

// WaitFor waits until ok reports true. If that takes too long, the test fails.
func WaitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testenv.Limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timeout: %s", what)
		}
	}
}

// Alive reports whether this machine has a process with that id.
func Alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// Kill kills the process with that id on this machine, if there is one.
func Kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}

// Listen serves connections on this machine, which is also the box, until the test ends.
func Listen(t testing.TB, network, address string, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil && strings.Contains(address, "::1") {
		t.Skipf("no IPv6 here: %v", err)
	}
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l
}

// Execute runs a program on this machine. The program must succeed.
func Execute(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}
