package sshhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

func TestStatus(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
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
		{"kill -BUS $$", shellbox.Status{Code: 128, Signal: -1}}, // OpenSSH does not name it
	} {
		t.Run(c.script, func(t *testing.T) {
			if r := run(t, h, sh(c.script)); r.Status != c.want {
				t.Errorf("got %+v, want %+v", r.Status, c.want)
			}
		})
	}
}

func TestPID(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	for name, terminal := range map[string]*shellbox.Terminal{"pipes": nil,
		"terminal": {Rows: 10, Cols: 40}} {
		t.Run(name, func(t *testing.T) {
			p, err := h.Start(t.Context(), shellbox.Program{
				Args: []string{"cat", "/proc/self/stat", "/proc/self/cmdline"}, Terminal: terminal})
			noError(t, err)
			r := finish(p)
			fields := strings.Fields(r.Stdout[:strings.LastIndexByte(r.Stdout, '\n')])
			if fields[0] != strconv.Itoa(p.PID()) {
				t.Errorf("PID is %d, and the program is %s", p.PID(), fields[0])
			}
			if fields[5] != fields[0] {
				t.Errorf("the program %s does not lead a session: %s", fields[0], fields[5])
			}
			if _, args, _ := strings.Cut(r.Stdout,
				"\n"); args != "cat\x00/proc/self/stat\x00/proc/self/cmdline\x00" {
				t.Errorf("arguments are %q", args)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	args := []string{"", "a b", "it's", `back\slash`, `\\'\`, "new\nline", "\n", "tab\t", "!boom!",
		"$HOME", "`x`", "*", "~", "-n", "--",
		"\"", "ümlaut €", "\xff\xfe broken", "\x01\x1b\x7f", strings.Repeat("'", 100), "a;b&c|d",
		"#no", "{a,b}", "%s", "=x", "end\n"}
	for name, more := range map[string]int{"short": 0, "long": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			args := args
			for n := 0; n < more; n += 1 << 10 {
				args = append(args[:len(args):len(args)], strings.Repeat("x'\n", 341))
			}
			r := run(t, h, shellbox.Program{Args: append([]string{"printf", `%s\0`}, args...)})
			if got := strings.Split(r.Stdout, "\x00"); strings.Join(got,
				"\x00") != strings.Join(args, "\x00")+"\x00" {
				for i := range args {
					if i < len(got) && got[i] != args[i] {
						t.Errorf("argument %d: got %q, want %q", i, got[i], args[i])
					}
				}
				t.Errorf("%d arguments, want %d; stderr: %s", len(got)-1, len(args), r.Stderr)
			}
		})
	}
	t.Run("long, with input", func(t *testing.T) {
		p, err := h.Start(t.Context(), shellbox.Program{
			Args: []string{"sh", "-c", "cat; exit 3", strings.Repeat("x", 120<<10)}})
		noError(t, err)
		fmt.Fprint(p.Stdin(), "first\nsecond")
		p.Stdin().Close()
		if r := finish(p); r.Stdout != "first\nsecond" || r.Status.Code != 3 {
			t.Errorf("got %q, %+v", r.Stdout, r.Status)
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
	h := hostOf(t, sshdtest.Start(t), Config{Env: []string{"A=host", "B=host"}})
	r := run(t, h, shellbox.Program{Args: []string{"env", "-0"}, Env: []string{
		"A=1", "A=2", "MULTI=a\nb'c\\", "EMPTY=", "UID=77", "odd.name=x y", "IFS=q", "__x=under",
		"LC_ALL=C", "PATH=/usr/bin:/bin", "n=1", "BASH_FUNC_f%%=() { :; }"}})
	env := map[string]string{}
	for kv := range strings.SplitSeq(r.Stdout, "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	for name, want := range map[string]string{"A": "2", "B": "host", "MULTI": "a\nb'c\\",
		"EMPTY": "", "UID": "77", "odd.name": "x y", "IFS": "q",
		"__x": "under", "LC_ALL": "C", "PATH": "/usr/bin:/bin", "n": "1",
		"BASH_FUNC_f%%": "() { :; }"} {
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
	h := hostOf(t, sshdtest.Start(t), Config{})
	base := t.TempDir()
	for _, name := range []string{"a b", "quote's", "new\nline", "-dash", "ümlaut", "\x1b]133;D\a",
		`back\slash`, "~", "$HOME", "trailing\n"} {
		dir := filepath.Join(base, name)
		noError(t, os.Mkdir(dir, 0o755))
		p := sh(`pwd; printf %s "${OLDPWD-unset}"`)
		p.Dir = dir
		if r := run(t, h, p); r.Stdout != dir+"\nunset" {
			t.Errorf("in %q: got %q", dir, r.Stdout)
		}
	}
	noError(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o644))
	for dir, want := range map[string]error{
		base + "/none":       fs.ErrNotExist,
		base + "/none/below": fs.ErrNotExist,
		base + "/file":       syscall.ENOTDIR,
		base + "/file/below": syscall.ENOTDIR,
		"none/below":         fs.ErrNotExist, // in the home directory
	} {
		_, err := h.Start(t.Context(), shellbox.Program{Args: []string{"true"}, Dir: dir})
		var path *fs.PathError
		if !errors.Is(err, want) || !errors.As(err, &path) || path.Path != dir {
			t.Errorf("in %s: got %v, want %v", dir, err, want)
		}
	}
}

func TestProgramNotFound(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("#!/bin/sh\n"), 0o644))
	noError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	noError(t, os.WriteFile(filepath.Join(dir, "script"), []byte("#!/bin/sh\necho script $0\n"),
		0o755))
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
			_, err := h.Start(t.Context(), shellbox.Program{Args: []string{c.program}, Env: env,
				Terminal: terminal})
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("%q: got %v, want %v", c.program, err, want)
				}
			}
		}
	}
	for _, program := range []string{"script", "./script"} {
		if r := run(t, h, shellbox.Program{Args: []string{program}, Env: env,
			Dir: dir}); !strings.HasPrefix(r.Stdout, "script ") {
			t.Errorf("%s: got %q, %q", program, r.Stdout, r.Stderr)
		}
	}
	waitFor(t, "the sessions of failed starts to end", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.connections[0].sessions == 0
	})
}

// TestStartupFileThatPrints checks that the output of a startup file is not part of the program's,
// on either stream.
func TestStartupFileThatPrints(t *testing.T) {
	h := hostOf(t,
		sshdtest.Start(t,
			`ForceCommand echo noise; echo more noise >&2; `+
				`printf 'no newline'; printf 'here either' >&2; eval "$SSH_ORIGINAL_COMMAND"`),
		Config{})
	if r := run(t, h, sh("echo out; echo err >&2")); r.Stdout != "out\n" || r.Stderr != "err\n" {
		t.Errorf("got %q and %q", r.Stdout, r.Stderr)
	}
	p := sh("echo out")
	p.Terminal = &shellbox.Terminal{Rows: 24, Cols: 80}
	if r := run(t, h, p); r.Stdout != "out\n" {
		t.Errorf("on a terminal: got %q", r.Stdout)
	}
}

func TestLoginShellThatRefuses(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t, "ForceCommand echo This account is not available; exit 5"),
		Config{})
	_, err := h.Start(t.Context(), sh("true"))
	if err == nil || !strings.Contains(err.Error(), "status 5") ||
		!strings.Contains(err.Error(), "This account is not available") {
		t.Errorf("got %v", err)
	}
}

func TestNoTerminal(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t, "PermitTTY no"), Config{})
	p := sh("true")
	p.Terminal = &shellbox.Terminal{Rows: 24, Cols: 80}
	if _, err := h.Start(t.Context(), p); err == nil || !strings.Contains(err.Error(), "terminal") {
		t.Errorf("got %v", err)
	}
}

func TestPrograms(t *testing.T) { hosttest.Programs(t, hostOf(t, sshdtest.Start(t), Config{})) }

// TestUser checks that only the user who has logged in can run programs.
func TestUser(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	own, err := user.Current()
	noError(t, err)
	for name, want := range map[string]error{
		own.Username: nil, own.Uid: nil, own.Uid + ":" + own.Gid: nil,
		"nobody": errors.ErrUnsupported, "no'such": errors.ErrUnsupported,
		"12345": errors.ErrUnsupported, own.Uid + ":12345": errors.ErrUnsupported,
		":": errors.ErrUnsupported,
	} {
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"true"}, User: name})
		if !errors.Is(err, want) || err != nil &&
			!strings.Contains(err.Error(), "log in as that user") {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
		if err == nil {
			hosttest.Finish(p)
		}
	}
}
