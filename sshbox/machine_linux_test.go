package sshbox

import (
	"bytes"
	"context"
	"errors"
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

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// dialBoxd makes a box with boxd, and closes it when the test ends.
func dialBoxd(t testing.TB, c DialConfig) *SSHBox {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testenv.Limit)
	defer cancel()
	box, err := Dial(ctx, c)
	noError(t, err)
	t.Cleanup(func() { noError(t, box.Close()) })
	if program, why := box.Boxd(); program == "" {
		t.Fatal("the box has no boxd: ", why)
	}
	return box
}

// boxdFiles returns what is in the directory of boxd and its boxes: "boxd" for a copy of boxd, and
// "box" for a box.
func boxdFiles(t testing.TB, c DialConfig) string {
	t.Helper()
	entries, err := os.ReadDir(c.Boxd)
	noError(t, err)
	var names []string
	for _, e := range entries {
		kind, _, _ := strings.Cut(e.Name(), "-")
		names = append(names, kind)
	}
	return strings.Join(names, " ")
}

// TestBoxdOnMachine shows that a box copies boxd to the machine, runs it in a session of its own,
// and leaves nothing but the copy.
func TestBoxdOnMachine(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	c := s.withBoxd()
	c.Env = []string{"FOO=bar baz", "HOME=" + t.TempDir()}
	box := dialBoxd(t, c)
	if got := output(t, box,
		"cd /usr; X=remembered; echo $FOO $X; trap '' HUP; (sleep 1000 "+
			"&)"); got != "bar baz remembered" {
		t.Errorf("got %q", got)
	}
	if got := boxdFiles(t, c); got != "box boxd" {
		t.Errorf("boxd's directory has %q", got)
	}
	program, _ := box.Boxd()
	info, err := os.Stat(filepath.Dir(program))
	noError(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's directory has the mode %v", info.Mode())
	}
	noError(t, box.Close())
	if got := boxdFiles(t, c); got != "boxd" {
		t.Errorf("Close has left %q", got)
	}
	if left := procfs.Marked(box.Mark()); len(left) > 0 {
		t.Errorf("Close has left processes: %v", left)
	}
}

// TestBoxdRestricted shows that boxd needs nothing of an sshd but the execution of commands, and
// that its programs have the limits and the environment of the login.
func TestBoxdRestricted(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "DisableForwarding yes", "Subsystem nothing /bin/false", "MaxSessions 1",
		`ForceCommand umask 027; ulimit -S -n 99; /bin/sh -c "$SSH_ORIGINAL_COMMAND"`)
	c := s.withBoxd()
	c.Boxd += "/" + strings.Repeat("a path that is too long for a socket/", 4)
	box := dialBoxd(t, c)
	plain, err := Dial(t.Context(), s.config())
	noError(t, err)
	defer plain.Close()
	const look = `unset SSH_ORIGINAL_COMMAND; umask; ulimit -a; pwd; env | grep -v -E '^(SSH_|SANDSHELL_)' | sort`
	if with, without := output(t, box, look), output(t, plain, look); with != without ||
		!strings.HasPrefix(with, "0027\n") || !strings.Contains(with, "(-n) 99\n") {
		t.Errorf("with boxd:\n%s\nwithout:\n%s", with, without)
	}
	if program, why := plain.Boxd(); program != "" || !strings.Contains(why, "NoBoxd") ||
		plain.BoxID() != "" {
		t.Errorf("got %q, %q", program, why)
	}
	if err := plain.Detach(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Detach: %v", err)
	}
	if err := box.Detach(); err == nil || !strings.Contains(err.Error(), "Keep") {
		t.Errorf("Detach without Keep: %v", err)
	}
	other, err := box.Dial(t.Context(), "tcp", s.Address) // through boxd, not through the sshd
	noError(t, err)
	other.Close()
}

// TestBoxdElsewhere makes boxes where boxd cannot run. They say why, and work without it.
func TestBoxdElsewhere(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	if os.Getuid() != 0 {
		t.Skip("only root can mount file systems: run it as root")
	}
	mounted := func(options string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			execute(t, "mount", "-t", "tmpfs", "-o", options, "sandshell-test", dir)
			t.Cleanup(func() { execute(t, "umount", dir) })
		}
	}
	for _, c := range []struct {
		name, why string
		prepare   func(t *testing.T, dir string)
	}{
		{"noexec", "noexec", mounted("noexec,mode=700")},
		{"full", "No space left", mounted("size=1m,mode=700")},
		{"read-only", "Read-only", mounted("ro,mode=700")},
		{"others", "can be written to by others", func(t *testing.T, dir string) {
			noError(t, os.Chmod(dir, 0o777))
		}},
		{"another's", "is not of uid", func(t *testing.T, dir string) {
			noError(t, os.Chown(dir, 65534, 0))
		}},
		{"a file", "cannot be made", func(t *testing.T, dir string) {
			noError(t, os.Remove(dir))
			noError(t, os.WriteFile(dir, nil, 0o600))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := s.config()
			config.Boxd = t.TempDir()
			c.prepare(t, config.Boxd)
			box, err := Dial(t.Context(), config)
			noError(t, err)
			defer box.Close()
			if program, why := box.Boxd(); program != "" || !strings.Contains(why, c.why) ||
				!strings.Contains(why, config.Boxd) {
				t.Errorf("got %q, %q", program, why)
			}
			if got := output(t, box, "echo works"); got != "works" {
				t.Errorf("got %q", got)
			}
			if entries, _ := os.ReadDir(config.Boxd); len(entries) > 0 {
				t.Errorf("Dial without boxd has left %v", entries)
			}
			config.Keep = true
			if _, err := Dial(t.Context(), config); !errors.Is(err, errors.ErrUnsupported) ||
				!strings.Contains(err.Error(), c.why) {
				t.Errorf("with Keep: %v", err)
			}
		})
	}
}

// TestBoxdCopyKilled kills the process that copies boxd to the machine, which has printed no error.
// The reason has its status.
func TestBoxdCopyKilled(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, `ForceCommand ulimit -f 1000; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"`)
	config := s.config()
	config.Boxd = t.TempDir()
	box, err := Dial(t.Context(), config)
	noError(t, err)
	defer box.Close()
	if program, why := box.Boxd(); program != "" ||
		!strings.Contains(why, "its copy ended with status ") || strings.HasSuffix(why, ": ") {
		t.Errorf("got %q, %q", program, why)
	}
	if got := output(t, box, "echo works"); got != "works" {
		t.Errorf("got %q", got)
	}
}

// TestBoxdBrought shows that programs can copy boxd to a machine at the same time, that a damaged
// copy is replaced, and that boxes survive Prune.
func TestBoxdBrought(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	c := s.withBoxd()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			box, err := Dial(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			if program, why := box.Boxd(); program == "" {
				t.Error(why)
			}
			if err := box.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if got := boxdFiles(t, c); got != "boxd" {
		t.Fatalf("boxd's directory has %q", got)
	}
	files, err := filepath.Glob(c.Boxd + "/boxd-*")
	noError(t, err)
	whole, err := os.ReadFile(files[0])
	noError(t, err)
	flipped := slices.Clone(whole)
	flipped[len(flipped)/2] ^= 1 << 3
	for what, damaged := range map[string][]byte{
		"flipped": flipped, "cut": whole[:len(whole)/3],
		"a script": []byte("#!/bin/sh\necho ready /tmp/x\n"),
	} {
		noError(t, os.Remove(files[0])) // not overwritten, because it may be running
		noError(t, os.WriteFile(files[0], damaged, 0o700))
		box, err := Dial(t.Context(), c)
		noError(t, err)
		if program, why := box.Boxd(); program == "" {
			t.Errorf("%s: %s", what, why)
		}
		noError(t, box.Close())
		if got, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(got, whole) ||
			boxdFiles(t, c) != "boxd" {
			t.Errorf("%s: the file has not been replaced (%v), or is not the only one: %q", what,
				err, boxdFiles(t, c))
		}
	}

	proxied, line := s.Through(t)
	c.Address = proxied.Address
	box := dialBoxd(t, c)
	noError(t, Machine{DialConfig: c}.Prune(t.Context()))
	if got := boxdFiles(t, c); got != "box" {
		t.Errorf("Prune has left %q", got)
	}
	line.Cut()
	if got := output(t, box, "echo on"); got != "on" {
		t.Errorf("got %q", got)
	}
	noError(t, box.Close())
	noError(t, Machine{DialConfig: c}.Prune(t.Context()))
	if _, err := os.Stat(c.Boxd); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

// TestBoxdOfOthers shows that other users cannot use boxd, even if the modes of its files allow all
// access.
func TestBoxdOfOthers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can become another user: run it as root")
	}
	s := startSSHD(t)
	c := s.withBoxd()
	box := dialBoxd(t, c)
	program, _ := box.Boxd()
	dir := filepath.Dir(program)
	join := func() (string, error) {
		cmd := exec.Command(program, "join", dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534,
			Gid: 65534}}
		in, err := cmd.StdinPipe()
		noError(t, err)
		defer in.Close()
		_, err = io.WriteString(in, wire.Claim{Nonce: "N", Key: "ssh-ed25519 AAAA"}.String())
		noError(t, err)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := join(); !errors.Is(err, syscall.EACCES) {
		t.Errorf("another user runs boxd join: %v, %q", err, out)
	}
	for _, d := range []string{c.Boxd, dir, program, dir + "/socket"} {
		noError(t, os.Chmod(d, 0o777))
	}
	if out, err := join(); strings.Contains(out, "sandshell answer") || err != nil &&
		strings.Contains(err.Error(), "denied") {
		t.Errorf("another user gets an answer, or does not reach the socket: %v, %q", err, out)
	}
	if got := output(t, box, "echo mine"); got != "mine" {
		t.Errorf("got %q", got)
	}
}

// TestCopyScriptKilled kills the script that receives a copy. CopyTo returns an error, and removes
// the temporary directory, which the script cannot remove.
func TestCopyScriptKilled(t *testing.T) {
	t.Parallel()
	box, err := Dial(t.Context(), startSSHD(t).config())
	noError(t, err)
	defer box.Close()
	from, to := filepath.Join(t.TempDir(), "large"), t.TempDir()
	noError(t, os.WriteFile(from, nil, 0o600))
	noError(t, os.Truncate(from, 1<<40))
	copied := make(chan error, 1)
	go func() { copied <- box.CopyTo(t.Context(), from, to) }()
	var scripts []int
	waitFor(t, "the copy", func() bool {
		begun, err := filepath.Glob(to + "/.sandshell-copy-*/x")
		noError(t, err)
		if len(begun) == 0 {
			return false
		}
		scripts = pidsWithArgument(t, filepath.Base(filepath.Dir(begun[0])))
		return len(scripts) > 0
	})
	for _, pid := range scripts {
		noError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	var path *fs.PathError
	if err := <-copied; !errors.As(err, &path) || path.Path != to || !errors.Is(err, syscall.EIO) ||
		!strings.Contains(err.Error(), "status 137") {
		t.Errorf("CopyTo: %v", err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("CopyTo has left %v, %v", left, err)
	}
}

// pidsWithArgument returns the processes that have word in an argument.
func pidsWithArgument(t *testing.T, word string) (pids []int) {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	noError(t, err)
	for _, name := range commands {
		args, _ := os.ReadFile(name)
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil &&
			bytes.Contains(args, []byte(word)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
