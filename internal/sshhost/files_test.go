package sshhost

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// TestNoSubsystem checks that a box reads and writes files through a shell if the server has no
// subsystem sftp that works.
func TestNoSubsystem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, subsystem, rc string }{
		{"another", "other internal-sftp", ""},
		{"not installed", "sftp /no/such/sftp-server", ""},
		{"behind what prints", "sftp /usr/lib/openssh/sftp-server", "echo Welcome"},
		{"behind what reads", "sftp /usr/lib/openssh/sftp-server",
			"case $BASH_EXECUTION_STRING in *sftp-server*) read ;; esac"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home, lines := t.TempDir(), []string{"Subsystem " + c.subsystem}
			if c.rc != "" {
				needsBash(t)
				lines = append(lines, "SetEnv HOME="+home)
				noError(t, os.WriteFile(filepath.Join(home, ".bashrc"), []byte(c.rc+"\n"), 0o600))
			}
			h := hostOf(t, sshdtest.Start(t, lines...), Config{})
			box, err := shellbox.New(t.Context(), h, shellbox.Options{})
			noError(t, err)
			defer box.Close()
			filesByShell(t, box.Files())
		})
	}
}

// needsBash skips the test if the user's login shell is not bash. bash reads ~/.bashrc when sshd
// runs it.
func needsBash(t *testing.T) {
	t.Helper()
	passwd, err := os.ReadFile("/etc/passwd")
	u, uerr := user.Current()
	noError(t, errors.Join(err, uerr))
	for line := range strings.Lines(string(passwd)) {
		if strings.HasPrefix(line, u.Username+":") && strings.HasSuffix(line, "/bash\n") {
			return
		}
	}
	t.Skip("the shell of " + u.Username + " is not bash")
}

func filesByShell(t *testing.T, f sandbox.Files) {
	dir := t.TempDir()
	content := bytes.Repeat([]byte("line\n"), 300_000)
	noError(t, f.WriteFile(t.Context(), dir+"/f", content, 0o640))
	for range 12 { // more than the sessions of a connection: each must end
		got, err := f.ReadFile(t.Context(), dir+"/f", 0)
		noError(t, err)
		if !bytes.Equal(got, content) {
			t.Fatalf("read different content of %d bytes", len(got))
		}
		if _, err := f.Stat(t.Context(), dir+"/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("got %v", err)
		}
	}
}

// TestFilesLost checks that calls and open files fail with sandbox.ErrLost when the connection
// ends.
func TestFilesLost(t *testing.T) {
	s, proxy := sshdtest.Start(t).Through(t)
	box, err := shellbox.New(t.Context(), hostOf(t, s, Config{}), shellbox.Options{})
	noError(t, err)
	defer box.Close()
	f := box.Files()
	name := filepath.Join(t.TempDir(), "f")
	noError(t, f.WriteFile(t.Context(), name, []byte("content"), 0o600))
	file, err := f.Open(t.Context(), name)
	noError(t, err)
	written := make(chan error, 1)
	go func() {
		for {
			if err := f.WriteFile(t.Context(), name, make([]byte, 1<<20), 0o600); err != nil {
				written <- err
				return
			}
		}
	}()
	proxy.Cut()
	select {
	case err := <-written:
		if !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("a write under way: %v", err)
		}
	case <-time.After(testenv.Limit):
		t.Fatal("a write does not end")
	}
	if _, err := io.ReadAll(file); !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("an open file: %v", err)
	}
	if _, err := f.ReadDir(t.Context(), "/"); !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("a call: %v", err)
	}
}
