package sshbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

func TestStatus(t *testing.T) {
	h := startSSHD(t).host(t, nil)
	for _, c := range []struct {
		script string
		want   shellbox.Status
	}{
		{"exit 0", shellbox.Status{}},
		{"exit 1", shellbox.Status{Code: 1}},
		{"exit 126", shellbox.Status{Code: 126}},
		{"exit 127", shellbox.Status{Code: 127}},
		{"exit 255", shellbox.Status{Code: 255}},
		{"kill -TERM $$", shellbox.Status{Code: 143, Signal: 15}},
		{"kill -KILL $$", shellbox.Status{Code: 137, Signal: 9}},
		{"kill -USR1 $$", shellbox.Status{Code: 138, Signal: 10}},
		{"kill -BUS $$", shellbox.Status{Code: 128, Signal: -1}}, // which OpenSSH does not name
	} {
		t.Run(c.script, func(t *testing.T) {
			if r := run(t, h, sh(c.script)); r.status != c.want {
				t.Errorf("got %+v, want %+v", r.status, c.want)
			}
		})
	}
}

func TestPID(t *testing.T) {
	h := startSSHD(t).host(t, nil)
	for name, terminal := range map[string]*shellbox.Terminal{"pipes": nil, "terminal": {Rows: 10, Cols: 40}} {
		t.Run(name, func(t *testing.T) {
			p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"cat", "/proc/self/stat", "/proc/self/cmdline"}, Terminal: terminal})
			noError(t, err)
			r := finish(p)
			fields := strings.Fields(r.stdout[:strings.LastIndexByte(r.stdout, '\n')])
			if fields[0] != strconv.Itoa(p.PID()) {
				t.Errorf("PID is %d, and the program is %s", p.PID(), fields[0])
			}
			if fields[5] != fields[0] {
				t.Errorf("the program %s does not lead a session: %s", fields[0], fields[5])
			}
			if _, args, _ := strings.Cut(r.stdout, "\n"); args != "cat\x00/proc/self/stat\x00/proc/self/cmdline\x00" {
				t.Errorf("arguments are %q", args)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	h := startSSHD(t).host(t, nil)
	args := []string{"", "a b", "it's", `back\slash`, `\\'\`, "new\nline", "\n", "tab\t", "!boom!", "$HOME", "`x`", "*", "~", "-n", "--",
		"\"", "ümlaut €", "\xff\xfe broken", "\x01\x1b\x7f", strings.Repeat("'", 100), "a;b&c|d", "#no", "{a,b}", "%s", "=x", "end\n"}
	for name, more := range map[string]int{"short": 0, "long": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			args := args
			for n := 0; n < more; n += 1 << 10 {
				args = append(args[:len(args):len(args)], strings.Repeat("x'\n", 341))
			}
			r := run(t, h, shellbox.Program{Args: append([]string{"printf", `%s\0`}, args...)})
			if got := strings.Split(r.stdout, "\x00"); strings.Join(got, "\x00") != strings.Join(args, "\x00")+"\x00" {
				for i := range args {
					if i < len(got) && got[i] != args[i] {
						t.Errorf("argument %d: got %q, want %q", i, got[i], args[i])
					}
				}
				t.Errorf("%d arguments, want %d; stderr: %s", len(got)-1, len(args), r.stderr)
			}
		})
	}
	t.Run("long, with input", func(t *testing.T) {
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sh", "-c", "cat; exit 3", strings.Repeat("x", 120<<10)}})
		noError(t, err)
		fmt.Fprint(p.Stdin(), "first\nsecond")
		p.Stdin().Close()
		if r := finish(p); r.stdout != "first\nsecond" || r.status.Code != 3 {
			t.Errorf("got %q, %+v", r.stdout, r.status)
		}
	})
	t.Run("NUL", func(t *testing.T) {
		_, err := h.Start(t.Context(), shellbox.Program{Args: []string{"echo", "a\x00b"}})
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("got %v", err)
		}
	})
}

func TestEnvironment(t *testing.T) {
	h := startSSHD(t).host(t, func(c *DialConfig) { c.Env = []string{"A=host", "B=host"} })
	r := run(t, h, shellbox.Program{Args: []string{"env", "-0"}, Env: []string{
		"A=1", "A=2", "MULTI=a\nb'c\\", "EMPTY=", "UID=77", "odd.name=x y", "IFS=q", "__x=under", "LC_ALL=C", "PATH=/usr/bin:/bin", "n=1", "BASH_FUNC_f%%=() { :; }"}})
	env := map[string]string{}
	for kv := range strings.SplitSeq(r.stdout, "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	for name, want := range map[string]string{"A": "2", "B": "host", "MULTI": "a\nb'c\\", "EMPTY": "", "UID": "77", "odd.name": "x y", "IFS": "q",
		"__x": "under", "LC_ALL": "C", "PATH": "/usr/bin:/bin", "n": "1", "BASH_FUNC_f%%": "() { :; }"} {
		if got, ok := env[name]; got != want || !ok {
			t.Errorf("%s is %q (%v), want %q", name, got, ok, want)
		}
	}
	for name := range env {
		if strings.HasPrefix(name, "__") && name != "__x" || name == "OLDPWD" {
			t.Errorf("left behind: %s", name)
		}
	}
	if env["HOME"] == "" || env["USER"] == "" {
		t.Errorf("the server's own environment is missing: %v", env)
	}
}

func TestDirectory(t *testing.T) {
	h := startSSHD(t).host(t, nil)
	base := t.TempDir()
	for _, name := range []string{"a b", "quote's", "new\nline", "-dash", "ümlaut", "\x1b]133;D\a", `back\slash`, "~", "$HOME", "trailing\n"} {
		dir := filepath.Join(base, name)
		noError(t, os.Mkdir(dir, 0o755))
		p := sh(`pwd; printf %s "${OLDPWD-unset}"`)
		p.Dir = dir
		if r := run(t, h, p); r.stdout != dir+"\nunset" {
			t.Errorf("in %q: got %q", dir, r.stdout)
		}
	}
	noError(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o644))
	for dir, want := range map[string]error{
		base + "/none":       fs.ErrNotExist,
		base + "/none/below": fs.ErrNotExist,
		base + "/file":       syscall.ENOTDIR,
		base + "/file/below": syscall.ENOTDIR,
		"relative":           errRelative,
	} {
		_, err := h.Start(t.Context(), shellbox.Program{Args: []string{"true"}, Dir: dir})
		var path *fs.PathError
		if !errors.Is(err, want) || !errors.As(err, &path) || path.Path != dir {
			t.Errorf("in %s: got %v, want %v", dir, err, want)
		}
	}
}

func TestProgramNotFound(t *testing.T) {
	h := startSSHD(t).host(t, nil)
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("#!/bin/sh\n"), 0o644))
	noError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	noError(t, os.WriteFile(filepath.Join(dir, "script"), []byte("#!/bin/sh\necho script $0\n"), 0o755))
	env := []string{"PATH=" + dir + ":/usr/bin:/bin"}
	for _, c := range []struct {
		program string
		want    []error
	}{
		{"no-such-program", []error{fs.ErrNotExist, exec.ErrNotFound}},
		{"cd-is-not-a-builtin-here", []error{fs.ErrNotExist}},
		{"export", []error{fs.ErrNotExist}}, // a builtin is not a program
		{dir + "/none", []error{fs.ErrNotExist, exec.ErrNotFound}},
		{"./none", []error{fs.ErrNotExist}},
		{"plain", []error{fs.ErrPermission}},
		{dir + "/plain", []error{fs.ErrPermission}},
		{dir + "/folder", []error{fs.ErrPermission}},
		{"folder", []error{fs.ErrNotExist}},
		{"", []error{syscall.EINVAL}},
	} {
		for _, terminal := range []*shellbox.Terminal{nil, {Rows: 24, Cols: 80}} {
			_, err := h.Start(t.Context(), shellbox.Program{Args: []string{c.program}, Env: env, Terminal: terminal})
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("%q: got %v, want %v", c.program, err, want)
				}
			}
		}
	}
	for _, program := range []string{"script", "./script"} {
		if r := run(t, h, shellbox.Program{Args: []string{program}, Env: env, Dir: dir}); !strings.HasPrefix(r.stdout, "script ") {
			t.Errorf("%s: got %q, %q", program, r.stdout, r.stderr)
		}
	}
	waitFor(t, "the slots of those that failed to be free again", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.connections[0].use.sessions == 0
	})
}

// What a startup file prints, on either stream, is not the program's.
func TestStartupFileThatPrints(t *testing.T) {
	h := startSSHD(t, `ForceCommand echo noise; echo more noise >&2; printf 'no newline'; printf 'here either' >&2; eval "$SSH_ORIGINAL_COMMAND"`).host(t, nil)
	if r := run(t, h, sh("echo out; echo err >&2")); r.stdout != "out\n" || r.stderr != "err\n" {
		t.Errorf("got %q and %q", r.stdout, r.stderr)
	}
	p := sh("echo out")
	p.Terminal = &shellbox.Terminal{Rows: 24, Cols: 80}
	if r := run(t, h, p); r.stdout != "out\n" {
		t.Errorf("on a terminal: got %q", r.stdout)
	}
}

func TestLoginShellThatRefuses(t *testing.T) {
	h := startSSHD(t, "ForceCommand echo This account is not available; exit 5").host(t, nil)
	_, err := h.Start(t.Context(), sh("true"))
	if err == nil || !strings.Contains(err.Error(), "status 5") || !strings.Contains(err.Error(), "This account is not available") {
		t.Errorf("got %v", err)
	}
}

func TestNoTerminalToBeHad(t *testing.T) {
	h := startSSHD(t, "PermitTTY no").host(t, nil)
	p := sh("true")
	p.Terminal = &shellbox.Terminal{Rows: 24, Cols: 80}
	if _, err := h.Start(t.Context(), p); err == nil || !strings.Contains(err.Error(), "terminal") {
		t.Errorf("got %v", err)
	}
}

func TestStreams(t *testing.T) {
	h := startSSHD(t).host(t, nil)
	t.Run("apart", func(t *testing.T) {
		r := run(t, h, sh(`printf 'out\0\377'; printf 'err\r\n' >&2`))
		if r.stdout != "out\x00\xff" || r.stderr != "err\r\n" {
			t.Errorf("got %q and %q", r.stdout, r.stderr)
		}
	})
	t.Run("50 MiB in", func(t *testing.T) {
		p, err := h.Start(t.Context(), sh("sha256sum; echo done >&2"))
		noError(t, err)
		sum := sha256.New()
		in := io.TeeReader(io.LimitReader(&pattern{}, 50<<20), sum)
		go func() {
			io.Copy(p.Stdin(), in)
			p.Stdin().Close()
		}()
		if r := finish(p); !strings.HasPrefix(r.stdout, fmt.Sprintf("%x", sum.Sum(nil))) || r.stderr != "done\n" {
			t.Errorf("got %q, %q", r.stdout, r.stderr)
		}
	})
	t.Run("50 MiB out on both", func(t *testing.T) {
		p, err := h.Start(t.Context(), sh("head -c 52428800 /dev/zero & head -c 52428800 /dev/zero >&2; wait"))
		noError(t, err)
		if r := finish(p); len(r.stdout) != 50<<20 || len(r.stderr) != 50<<20 {
			t.Errorf("got %d and %d bytes", len(r.stdout), len(r.stderr))
		}
	})
	t.Run("end of input at once", func(t *testing.T) {
		if r := run(t, h, shellbox.Program{Args: []string{"cat"}}); r.stdout != "" || r.status.Code != 0 {
			t.Errorf("got %q, %+v", r.stdout, r.status)
		}
	})
	t.Run("program that does not read its input", func(t *testing.T) {
		p, err := h.Start(t.Context(), sh("exit 4"))
		noError(t, err)
		if _, err := io.Copy(p.Stdin(), io.LimitReader(&pattern{}, 50<<20)); err == nil {
			t.Error("50 MiB went to a program that has ended")
		}
		if r := finish(p); r.status.Code != 4 {
			t.Errorf("got %+v", r.status)
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

// pattern is data without end that is not all the same.
type pattern struct{ n byte }

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = p.n
		p.n = p.n*167 + 13
	}
	return len(b), nil
}

func TestCloseFreesReadsAndWrites(t *testing.T) {
	h := startSSHD(t).host(t, nil)
	p, err := h.Start(t.Context(), sh("exec sleep 60")) // reads nothing: the channel's window fills, and the server does not even answer the close
	noError(t, err)
	var wg sync.WaitGroup
	for _, f := range []func() error{
		func() error { _, err := p.Stdout().Read(make([]byte, 1)); return err },
		func() error { _, err := p.Stderr().Read(make([]byte, 1)); return err },
		func() error { _, err := io.Copy(p.Stdin(), &pattern{}); return err },
		func() error { _, err := p.Wait(); return err },
	} {
		wg.Go(func() {
			if err := f(); err == nil {
				t.Error("ended without an error")
			}
		})
	}
	// Until the writer is stuck: what the server has taken no longer grows.
	waitFor(t, "the window to fill", func() bool { return len(p.(*process).writing) == 1 })
	noError(t, p.Close())
	noError(t, p.Close())
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("Close did not free them")
	}
	kill(p.PID())
}

// waitFor waits for a condition that nothing tells of.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestTerminal(t *testing.T) {
	h := startSSHD(t).host(t, nil)
	terminal := &shellbox.Terminal{Rows: 33, Cols: 111}
	t.Run("exact", func(t *testing.T) {
		p := sh(`stty size; tty >/dev/null && echo tty; printf 'a\nb\r\nc\td\0'; printf 'e\n' >&2; stty -a`)
		p.Terminal, p.Env = terminal, []string{"TERM=vt100"}
		r := run(t, h, p)
		if !strings.HasPrefix(r.stdout, "33 111\ntty\na\nb\r\nc\td\x00e\n") {
			t.Errorf("got %q", r.stdout)
		}
		modes := strings.Fields(r.stdout)
		for _, mode := range []string{"echo", "-onlcr", "icanon", "isig", "icrnl", "iutf8", "opost"} {
			if !slices.Contains(modes, mode) {
				t.Errorf("no %q in %s", mode, r.stdout)
			}
		}
	})
	t.Run("nothing lost at the begin", func(t *testing.T) {
		for range 50 {
			p := shellbox.Program{Args: []string{"printf", "x"}, Terminal: terminal}
			if r := run(t, h, p); r.stdout != "x" {
				t.Fatalf("got %q", r.stdout)
			}
		}
	})
	t.Run("TERM", func(t *testing.T) {
		p := shellbox.Program{Args: []string{"printenv", "TERM"}, Terminal: terminal}
		if r := run(t, h, p); r.stdout != "xterm\n" {
			t.Errorf("got %q", r.stdout)
		}
		p.Env = []string{"TERM=dumb"}
		if r := run(t, h, p); r.stdout != "dumb\n" {
			t.Errorf("got %q", r.stdout)
		}
	})
	t.Run("echo and resize", func(t *testing.T) {
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sh", "-c", `trap 'stty size; exit' WINCH; echo ready; while read x; do echo "got $x"; done`}, Terminal: terminal})
		noError(t, err)
		if p.Stderr() != nil {
			t.Error("a terminal has no standard error apart")
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
		// The shell's read goes on after the signal in some shells: give it a line.
		fmt.Fprint(p.Stdin(), "\n")
		until("50 132\n")
		if out.String() != "ready\nhällo\ngot hällo\n\n50 132\n" && out.String() != "ready\nhällo\ngot hällo\n50 132\n" && out.String() != "ready\nhällo\ngot hällo\n\ngot \n50 132\n" {
			t.Errorf("got %q", out.String())
		}
		finish(p)
	})
	t.Run("hangup", func(t *testing.T) {
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sleep", "60"}, Terminal: terminal})
		noError(t, err)
		noError(t, p.Close())
		waitFor(t, "SIGHUP", func() bool { return !alive(p.PID()) })
	})
	t.Run("too long", func(t *testing.T) {
		p := shellbox.Program{Args: []string{"echo", strings.Repeat("x", 200<<10)}, Terminal: terminal}
		if _, err := h.Start(t.Context(), p); !errors.Is(err, syscall.E2BIG) {
			t.Errorf("got %v", err)
		}
	})
}

// More sessions than a connection may have, at a server with its defaults.
func TestFiftySessions(t *testing.T) {
	for name, lines := range map[string][]string{"default": nil, "MaxSessions 3": {"MaxSessions 3"}} {
		t.Run(name, func(t *testing.T) {
			h := startSSHD(t, lines...).host(t, nil)
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
				if r := finish(p); r.stdout != strconv.Itoa(i) {
					t.Errorf("%d: got %q", i, r.stdout)
				}
			}
			h.mu.Lock()
			t.Logf("%d connections", len(h.connections))
			h.mu.Unlock()
		})
	}
}

func TestNoSessionsAtAll(t *testing.T) {
	h := startSSHD(t, "MaxSessions 0").host(t, nil)
	if _, err := h.Start(t.Context(), sh("true")); err == nil || !strings.Contains(err.Error(), "refuses") {
		t.Errorf("got %v", err)
	}
}

func TestStartCancelled(t *testing.T) {
	s := startSSHD(t)
	h := s.host(t, nil)
	marker := fmt.Sprintf("%d.5", 600000+os.Getpid()) // an argument of sleep to find it by
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
			t.Fatalf("after %d: a program is left behind", i)
		}
	}
	waitFor(t, "all sessions to be free again", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.connections[0].use.sessions == 0
	})
}

// A startup file that does not end: the shell that comes after it finds nobody, and starts nothing.
func TestStartCancelledInStartupFile(t *testing.T) {
	s := startSSHD(t, `ForceCommand sleep 2; eval "$SSH_ORIGINAL_COMMAND"`)
	h := s.host(t, nil)
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
		return h.connections[0].use.sessions == 0
	})
	if _, err := os.Stat(file); err == nil {
		t.Error("the program was started for nobody")
	}
}

func TestClose(t *testing.T) {
	h := startSSHD(t).host(t, nil)
	p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"cat", "/dev/zero"}}) // unread
	noError(t, err)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { h.Close() })
	}
	wg.Wait()
	if _, err := p.Wait(); err == nil {
		t.Error("Wait told a status")
	}
	if _, err := io.Copy(io.Discard, p.Stdout()); err == nil {
		t.Error("the output ended like a program's")
	}
	if _, err := p.Stdin().Write([]byte("x")); err == nil {
		t.Error("wrote")
	}
	if _, err := h.Start(t.Context(), sh("true")); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("Start: %v", err)
	}
	if _, err := h.Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("Dial: %v", err)
	}
}
