package kube

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shells are the command lines of the shells that images have.
var shells = map[string][]string{"bash": {"bash"}, "dash": {"dash"}, "busybox": {"busybox", "sh"}}

// pipes are a process's standard streams.
type pipes struct {
	io.Reader
	io.Writer
}

// TestBring brings boxd in real shells, as a pod's exec does. boxd is verified, with and without
// gzip.
func TestBring(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the script is for Linux")
	}
	for name, shell := range shells {
		for _, few := range []bool{false, true} {
			t.Run(name+map[bool]string{true: "/few tools", false: ""}[few], func(t *testing.T) {
				t.Parallel()
				path, err := exec.LookPath(shell[0])
				if err != nil {
					t.Skip("no " + shell[0] + " here: make prepare installs it, on Debian")
				}
				dir := t.TempDir()
				cmd := exec.CommandContext(t.Context(), path,
					append(shell[1:], "-c", bringBoxd, "sh", dir, "box")...)
				if few {
					cmd.Env = []string{"PATH=" + tools(t, "uname", "head", "sha256sum", "chmod",
						"mv")}
					if name == "busybox" {
						t.Skip("its tools are its own")
					}
				}
				var said bytes.Buffer
				cmd.Stderr = &said
				in, err := cmd.StdinPipe()
				require.NoError(t, err)
				out, err := cmd.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				require.NoError(t, bring(pipes{out, in}), &said)
				require.Error(t, cmd.Wait())
				// This is the message of boxd join: there is no box here.
				require.Contains(t, said.String(), "reach the box")
				got, err := os.ReadFile(filepath.Join(dir, "boxd"))
				require.NoError(t, err)
				want, err := bin.For(runtime.GOARCH).Program()
				require.NoError(t, err)
				require.True(t, bytes.Equal(got, want))
			})
		}
	}
}

// tools returns a PATH that has only these programs.
func tools(t *testing.T, names ...string) string {
	dir := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	return dir
}

// TestBringDamaged checks that a program with another checksum does not become boxd.
func TestBringDamaged(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the script is for Linux")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", bringBoxd, "sh", dir, "box")
	cmd.Env = []string{"PATH=" + tools(t, "uname", "head", "sha256sum", "chmod", "mv")}
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Stdin = bytes.NewBufferString("3 0123\nabc")
	require.Error(t, cmd.Run())
	require.Contains(t, said.String(), "boxd was damaged on the way")
	require.NoFileExists(t, filepath.Join(dir, "boxd"))
}

// TestWaitForBoxd checks that the container waits for boxd and becomes it, or gives up.
func TestWaitForBoxd(t *testing.T) {
	for name, shell := range shells {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(shell[0])
			if err != nil {
				t.Skip("no " + shell[0] + " here: make prepare installs it, on Debian")
			}
			boxd := filepath.Join(t.TempDir(), "boxd")
			wait := append(shell[1:], "-c", waitForBoxd, "sh")
			out, err := exec.CommandContext(t.Context(), path,
				append(wait, "2", boxd, "serve")...).CombinedOutput()
			require.Error(t, err)
			require.Equal(t, "nobody has brought boxd\n", string(out))
			require.NoError(t, os.WriteFile(boxd, []byte("#!/bin/sh\necho \"$@\"\n"), 0o755))
			out, err = exec.CommandContext(t.Context(), path,
				append(wait, "2", boxd, "serve", "a b")...).CombinedOutput()
			require.NoError(t, err)
			require.Equal(t, "serve a b\n", string(out))
		})
	}
}
