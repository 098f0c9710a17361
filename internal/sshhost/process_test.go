package sshhost

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

func TestStreams(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	t.Run("two streams", func(t *testing.T) {
		r := run(t, h, sh(`printf 'out\0\377'; printf 'err\r\n' >&2`))
		if r.Stdout != "out\x00\xff" || r.Stderr != "err\r\n" {
			t.Errorf("got %q and %q", r.Stdout, r.Stderr)
		}
	})
	const much = 8 << 20 // several windows of a channel
	t.Run("much in", func(t *testing.T) {
		p, err := h.Start(t.Context(), sh("sha256sum; echo done >&2"))
		noError(t, err)
		sum := sha256.New()
		in := io.TeeReader(io.LimitReader(&pattern{}, much), sum)
		go func() {
			io.Copy(p.Stdin(), in)
			p.Stdin().Close()
		}()
		if r := finish(p); !strings.HasPrefix(r.Stdout, fmt.Sprintf("%x", sum.Sum(nil))) ||
			r.Stderr != "done\n" {
			t.Errorf("got %q, %q", r.Stdout, r.Stderr)
		}
	})
	t.Run("much out on both", func(t *testing.T) {
		p, err := h.Start(t.Context(), sh(fmt.Sprintf(
			"head -c %d /dev/zero & head -c %[1]d /dev/zero >&2; wait", much)))
		noError(t, err)
		if r := finish(p); len(r.Stdout) != much || len(r.Stderr) != much {
			t.Errorf("got %d and %d bytes", len(r.Stdout), len(r.Stderr))
		}
	})
	t.Run("end of input at once", func(t *testing.T) {
		if r := run(t, h, shellbox.Program{Args: []string{"cat"}}); r.Stdout != "" ||
			r.Status.Code != 0 {
			t.Errorf("got %q, %+v", r.Stdout, r.Status)
		}
	})
	t.Run("program that does not read its input", func(t *testing.T) {
		p, err := h.Start(t.Context(), sh("exit 4"))
		noError(t, err)
		if _, err := io.Copy(p.Stdin(), io.LimitReader(&pattern{}, much)); err == nil {
			t.Errorf("%d bytes went to a program that has ended", much)
		}
		if r := finish(p); r.Status.Code != 4 {
			t.Errorf("got %+v", r.Status)
		}
	})
	t.Run("Wait does not wait for a descendant that holds the output", func(t *testing.T) {
		p, err := h.Start(t.Context(), sh("sleep 60 & echo $!; exit 6"))
		noError(t, err)
		status, err := p.Wait()
		if err != nil || status.Code != 6 {
			t.Errorf("got %+v, %v", status, err)
		}
		b := make([]byte, 100)
		n, err := p.Stdout().Read(b)
		noError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
		noError(t, err)
		noError(t, p.Close())
		kill(pid)
	})
}

// A pattern reads endless data that varies.
type pattern struct{ n byte }

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = p.n
		p.n = p.n*167 + 13
	}
	return len(b), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestCloseFreesReadsAndWrites(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	// The program reads nothing. So the channel's window fills, and the server does not answer the
	// close.
	p, err := h.Start(t.Context(), sh("exec sleep 60"))
	noError(t, err)
	var wg sync.WaitGroup
	var written atomic.Int64
	input := io.TeeReader(&pattern{}, writerFunc(func(b []byte) (int, error) {
		written.Add(int64(len(b)))
		return len(b), nil
	}))
	for _, f := range []func() error{
		func() error { _, err := p.Stdout().Read(make([]byte, 1)); return err },
		func() error { _, err := p.Stderr().Read(make([]byte, 1)); return err },
		func() error { _, err := io.Copy(p.Stdin(), input); return err },
		func() error { _, err := p.Wait(); return err },
	} {
		wg.Go(func() {
			if err := f(); err == nil {
				t.Error("ended without an error")
			}
		})
	}
	// The server's window is 2 MiB. When it is full, the writer is stuck or about to be.
	waitFor(t, "the window to fill", func() bool { return written.Load() > 2<<20 })
	noError(t, p.Close())
	noError(t, p.Close())
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testenv.Limit):
		t.Fatal("reads, writes or Wait go on after Close")
	}
	kill(p.PID())
}

func TestTerminal(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	terminal := &shellbox.Terminal{Rows: 33, Cols: 111}
	t.Run("exact", func(t *testing.T) {
		p := sh(`stty size; tty >/dev/null && echo tty; printf 'a\nb\r\nc\td\0'; ` +
			`printf 'e\n' >&2; stty -a`)
		p.Terminal, p.Env = terminal, []string{"TERM=vt100"}
		r := run(t, h, p)
		if !strings.HasPrefix(r.Stdout, "33 111\ntty\na\nb\r\nc\td\x00e\n") {
			t.Errorf("got %q", r.Stdout)
		}
		modes := strings.Fields(r.Stdout)
		for _, mode := range []string{"echo", "-onlcr", "icanon", "isig", "icrnl", "iutf8",
			"opost"} {
			if !slices.Contains(modes, mode) {
				t.Errorf("no %q in %s", mode, r.Stdout)
			}
		}
	})
	t.Run("output begins with the program's first byte", func(t *testing.T) {
		for range 50 {
			p := shellbox.Program{Args: []string{"printf", "x"}, Terminal: terminal}
			if r := run(t, h, p); r.Stdout != "x" {
				t.Fatalf("got %q", r.Stdout)
			}
		}
	})
	t.Run("TERM", func(t *testing.T) {
		p := shellbox.Program{Args: []string{"printenv", "TERM"}, Terminal: terminal}
		if r := run(t, h, p); r.Stdout != "xterm\n" {
			t.Errorf("got %q", r.Stdout)
		}
		p.Env = []string{"TERM=dumb"}
		if r := run(t, h, p); r.Stdout != "dumb\n" {
			t.Errorf("got %q", r.Stdout)
		}
	})
	t.Run("echo and resize", func(t *testing.T) {
		p, err := h.Start(t.Context(), shellbox.Program{
			Args: []string{"sh", "-c",
				`trap 'stty size; exit' WINCH; echo ready; while read x; do echo "got $x"; done`},
			Terminal: terminal})
		noError(t, err)
		if p.Stderr() != nil {
			t.Error("a program on a terminal has a standard error")
		}
		var out bytes.Buffer
		until := func(want string) {
			b := make([]byte, 1)
			for !strings.HasSuffix(out.String(), want) {
				if _, err := p.Stdout().Read(b); err != nil {
					t.Fatalf("%v after %q", err, out.String())
				}
				out.Write(b)
			}
		}
		until("ready\n")
		fmt.Fprint(p.Stdin(), "hällo\n")
		until("got hällo\n")
		noError(t, p.Stdin().Close()) // does nothing
		noError(t, p.Resize(50, 132))
		// In some shells read goes on after the signal, and needs a line.
		fmt.Fprint(p.Stdin(), "\n")
		until("50 132\n")
		if out.String() != "ready\nhällo\ngot hällo\n\n50 132\n" &&
			out.String() != "ready\nhällo\ngot hällo\n50 132\n" &&
			out.String() != "ready\nhällo\ngot hällo\n\ngot \n50 132\n" {
			t.Errorf("got %q", out.String())
		}
		finish(p)
	})
	t.Run("hangup", func(t *testing.T) {
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sleep", "60"},
			Terminal: terminal})
		noError(t, err)
		noError(t, p.Close())
		waitFor(t, "SIGHUP", func() bool { return !alive(p.PID()) })
	})
	t.Run("too long", func(t *testing.T) {
		p := shellbox.Program{Args: []string{"echo", strings.Repeat("x", 200<<10)},
			Terminal: terminal}
		if _, err := h.Start(t.Context(), p); !errors.Is(err, syscall.E2BIG) {
			t.Errorf("got %v", err)
		}
	})
}

// TestFiftySessions starts more programs than a connection may have sessions.
func TestFiftySessions(t *testing.T) {
	for name, lines := range map[string][]string{"default": nil,
		"MaxSessions 3": {"MaxSessions 3"}} {
		t.Run(name, func(t *testing.T) {
			h := hostOf(t, sshdtest.Start(t, lines...), Config{})
			var wg sync.WaitGroup
			procs := make([]shellbox.Process, 50)
			for i := range procs {
				wg.Go(func() {
					p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"cat"}})
					if err != nil {
						t.Error(err)
						return
					}
					procs[i] = p
				})
			}
			wg.Wait()
			for i, p := range procs {
				if p == nil {
					continue
				}
				fmt.Fprint(p.Stdin(), i)
				p.Stdin().Close()
				if r := finish(p); r.Stdout != strconv.Itoa(i) {
					t.Errorf("%d: got %q", i, r.Stdout)
				}
			}
			h.mu.Lock()
			t.Logf("%d connections", len(h.connections))
			h.mu.Unlock()
		})
	}
}

func TestNoSessionsAtAll(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t, "MaxSessions 0"), Config{})
	if _, err := h.Start(t.Context(), sh("true")); err == nil ||
		!strings.Contains(err.Error(), "refuses") {
		t.Errorf("got %v", err)
	}
}

func TestStartCancelled(t *testing.T) {
	s := sshdtest.Start(t)
	h := hostOf(t, s, Config{})
	marker := fmt.Sprintf("%d.5", 600000+os.Getpid()) // an argument by which pgrep finds sleep
	running := func() bool { return exec.Command("pgrep", "-f", "^sleep "+marker).Run() == nil }
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*250*time.Microsecond)
		p, err := h.Start(ctx, shellbox.Program{Args: []string{"sleep", marker}})
		cancel()
		if err == nil {
			kill(p.PID())
			finish(p)
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if running() {
			t.Fatalf("round %d: a program is left behind", i)
		}
	}
	waitFor(t, "all sessions to be free again", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.connections[0].sessions == 0
	})
}

// TestStartCancelledInStartupFile cancels Start during a slow startup file. The script that runs
// after it finds its output closed, and does not start the program.
func TestStartCancelledInStartupFile(t *testing.T) {
	s := sshdtest.Start(t, `ForceCommand sleep 2; eval "$SSH_ORIGINAL_COMMAND"`)
	h := hostOf(t, s, Config{})
	file := filepath.Join(t.TempDir(), "started")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := h.Start(ctx, shellbox.Program{Args: []string{"touch", file}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(begin); d > 1900*time.Millisecond {
		t.Errorf("Start took %v", d)
	}
	waitFor(t, "the login shell to end", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.connections[0].sessions == 0
	})
	if _, err := os.Stat(file); err == nil {
		t.Error("the program was started after Start had returned")
	}
}

func TestClose(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"cat", "/dev/zero"}}) // unread
	noError(t, err)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { h.Close() })
	}
	wg.Wait()
	if _, err := p.Wait(); err == nil {
		t.Error("Wait returned a status")
	}
	if _, err := io.Copy(io.Discard, p.Stdout()); err == nil {
		t.Error("the output ended with io.EOF")
	}
	if _, err := p.Stdin().Write([]byte("x")); err == nil {
		t.Error("Write succeeded")
	}
	if _, err := h.Start(t.Context(), sh("true")); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("Start: %v", err)
	}
	if _, err := h.Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("Dial: %v", err)
	}
}
