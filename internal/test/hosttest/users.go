package hosttest

import (
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/stretchr/testify/require"
)

// Users tests Program.User on a host whose own user is root.
func Users(t *testing.T, h interface {
	shellbox.Host
	hostapi.Processes
}) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user: run the test as root")
	}
	nobody, err := programs.ReadAccount("nobody", -1)
	if err != nil {
		t.Skipf("this machine has no account to become: %v", err)
	}
	as := func(name, script string) shellbox.Program {
		p := Sh(script)
		p.User, p.Dir = name, "/"
		return p
	}
	ids := `echo "$(id -u) $(id -g) $(id -G) $HOME ${USER-unset} ${LOGNAME-unset} ${SHELL-unset}"`
	for _, c := range []struct{ user, want string }{
		{"nobody", "65534 65534 65534 " + nobody.Home + " nobody nobody " + nobody.Shell},
		{"65534", "65534 65534 65534 " + nobody.Home + " nobody nobody " + nobody.Shell},
		{"65534:12", "65534 12 12 " + nobody.Home + " nobody nobody " + nobody.Shell},
		{"12345", "12345 0 0 / unset unset unset"},
		{"12345:54321", "12345 54321 54321 / unset unset unset"},
	} {
		t.Run(c.user, func(t *testing.T) {
			r := Run(t, h, as(c.user, ids))
			require.Equal(t, c.want+"\n", r.Stdout, r.Stderr)
		})
	}
	t.Run("Own", func(t *testing.T) {
		want := Run(t, h, as("", ids+"; env | sort")).Stdout
		for _, name := range []string{"root", "0", "0:0"} {
			require.Equal(t, want, Run(t, h, as(name, ids+"; env | sort")).Stdout, name)
		}
	})
	t.Run("Env", func(t *testing.T) {
		p := as("nobody", ids)
		p.Env = []string{"HOME=/tmp", "SHELL=/bin/sh"}
		require.Equal(t, "65534 65534 65534 /tmp nobody nobody /bin/sh\n", Run(t, h, p).Stdout)
	})
	t.Run("Streams", func(t *testing.T) { // the streams can be opened by name
		r := Run(t, h, as("nobody", "echo out >/dev/stdout; echo err >/dev/stderr; cat /dev/stdin"))
		require.Equal(t, Result{Stdout: "out\n", Stderr: "err\n"}, r)
	})
	t.Run("Terminal", func(t *testing.T) {
		p := as("nobody",
			`t=$(tty) && ls -ln "$t" | cut -d" " -f3 && echo by name >"$t" && stty -echo <"$t"`)
		p.Terminal = &shellbox.Terminal{Rows: 24, Cols: 80}
		r := Run(t, h, p)
		require.Equal(t, "65534\nby name\n", r.Stdout)
		require.Zero(t, r.Status.Code)
	})
	t.Run("Path", func(t *testing.T) { // a program that the user may not see is not found
		p := as("nobody", "")
		p.Args, p.Env = []string{"true"}, []string{"PATH=" + hidden(t) + ":/usr/bin:/bin"}
		require.Zero(t, Run(t, h, p).Status.Code)
		p.Args[0] = hidden(t) + "/true"
		_, err := h.Start(t.Context(), p)
		require.ErrorIs(t, err, fs.ErrPermission)
	})
	t.Run("Dir", func(t *testing.T) {
		p := as("nobody", "true")
		p.Dir = hidden(t)
		_, err := h.Start(t.Context(), p)
		require.ErrorIs(t, err, fs.ErrPermission)
		require.ErrorContains(t, err, p.Dir)
		require.ErrorContains(t, err, "as nobody")
	})
	t.Run("Unknown", func(t *testing.T) {
		for _, name := range []string{"no-such-user", "no-such-user:0", "4294967296", "-1", ":0"} {
			_, err := h.Start(t.Context(), as(name, "true"))
			var unknown user.UnknownUserError
			if name != ":0" {
				require.ErrorAs(t, err, &unknown, name)
			}
			require.Error(t, err)
		}
		_, err := h.Start(t.Context(), as("nobody:users", "true"))
		require.ErrorContains(t, err, "number")
	})
	t.Run("Marked", func(t *testing.T) {
		p := as("nobody", "sleep 1000")
		p.Env = []string{"A=mark of " + strings.ReplaceAll(t.Name(), "/", " ")}
		started, err := h.Start(t.Context(), p)
		require.NoError(t, err)
		seen := false
		for { // repeat, because the shell may be about to fork
			pids, err := h.Marked(t.Context(), p.Env[0])
			require.NoError(t, err)
			if len(pids) == 0 {
				break
			}
			seen = seen || slices.Contains(pids, started.PID())
			sent, err := h.Signal(t.Context(), pids, "KILL")
			require.NoError(t, err)
			require.LessOrEqual(t, sent, len(pids))
		}
		require.True(t, seen)
		Finish(started)
	})
}

// hidden makes a directory that only root may enter, on this machine, which is also the box. It has
// a program named "true" that fails.
func hidden(t testing.TB) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/true", []byte("#!/bin/sh\nexit 9\n"), 0o755))
	require.NoError(t, os.Chmod(dir, 0o700))
	return dir
}
