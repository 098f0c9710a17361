package localbox_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, c localbox.Config) *localbox.LocalBox {
	t.Helper()
	box, err := localbox.New(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { box.Close() })
	return box
}

// TestConformance runs the suite in each shell that this machine has of those that sandshell
// promises to work with.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "dash", "busybox ash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(shell)
			if _, err := exec.LookPath(args[0]); err != nil {
				t.Skipf("this machine has no %s: install it", args[0])
			}
			opts := testenv.Suite()
			switch {
			case shell == "bash" && testenv.All():
				// of Zoo; TestConformanceSSHBox has the third
				opts = testenv.Suite(sandboxtest.Fourths(0, 1, 3))
			case shell == "dash":
				opts = testenv.Suite(testenv.Some("Syntax", "State")) // what the shell decides
			case shell == "busybox ash":
				testenv.NeedsAll(t, "dash, which is much like it, runs every day")
			}
			sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
				return open(t, localbox.Config{Shell: args})
			}, opts...)
		})
	}
}

func TestTemporaryDirectory(t *testing.T) {
	box := open(t, localbox.Config{})
	res, err := box.Execute(t.Context(), "mkdir -p a/b; chmod 500 a; pwd")
	require.NoError(t, err)
	require.Equal(t, box.Dir()+"\n", res.Output)
	info, err := os.Stat(box.Dir())
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|0o700, info.Mode(), "it is nobody else's")
	require.NoError(t, box.Close())
	require.NoDirExists(t, box.Dir())
}

func TestGivenDirectoryStays(t *testing.T) {
	dir := t.TempDir()
	box := open(t, localbox.Config{Dir: dir})
	_, err := box.Execute(t.Context(), "echo x > f")
	require.NoError(t, err)
	require.NoError(t, box.Close())
	require.FileExists(t, filepath.Join(dir, "f"))
}

func TestEnvironment(t *testing.T) {
	t.Setenv("FROM_PROGRAM", "1")
	box := open(t, localbox.Config{Env: []string{"FROM_CONFIG=2", "TERM=dumb"}})
	res, err := box.Execute(t.Context(), `echo "$FROM_PROGRAM $FROM_CONFIG $TERM"`)
	require.NoError(t, err)
	require.Equal(t, "1 2 dumb\n", res.Output)
}

func TestBadConfig(t *testing.T) {
	for _, c := range []struct {
		name   string
		config localbox.Config
		is     error
		says   string
	}{
		{"NoDir", localbox.Config{Dir: "/does/not/exist"}, fs.ErrNotExist,
			"localbox: Config.Dir: stat /does/not/exist"},
		{"NotADir", localbox.Config{Dir: "/dev/null"}, nil, "/dev/null: not a directory"},
		{"NoShell", localbox.Config{Shell: []string{"no-such-shell"}}, exec.ErrNotFound,
			"localbox: Config.Shell: open main: no-such-shell: no such program"},
		{"EmptyShell", localbox.Config{Shell: []string{""}}, nil,
			"localbox: Config.Shell: its first element is empty: give the shell's name"},
		{"Env", localbox.Config{Env: []string{"A"}}, nil, `localbox: Config.Env: environment "A"`},
		{"Grace", localbox.Config{Grace: -time.Second}, nil,
			"localbox: Config.Grace: -1s is negative: give more, or 0 for the default"},
		{"SlowShell", localbox.Config{Shell: []string{"sh", "-c", "sleep 100"},
			StartLimit: 50 * time.Millisecond}, context.DeadlineExceeded,
			"not at its prompt within 50ms"},
		{"NotAShell", localbox.Config{Shell: []string{"true"}}, nil,
			"ended with status 0 before its first prompt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			_, err := localbox.New(t.Context(), c.config)
			require.ErrorContains(t, err, "localbox: ")
			require.ErrorContains(t, err, c.says)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestCanceledStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := localbox.New(ctx, localbox.Config{})
	require.True(t, errors.Is(err, context.Canceled), "%v", err)
}

// TestUserRelativeProgram: a program that a user may not execute is not looked for in another
// directory.
func TestUserRelativeProgram(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can run programs as other users")
	}
	box := open(t, localbox.Config{Dir: t.TempDir()})
	require.NoError(t, box.Files().MkdirAll(t.Context(), "bin", 0o755))
	// "/" has one, too
	require.NoError(t, box.Files().WriteFile(t.Context(), "bin/true", []byte("#!/bin/sh\n"), 0o644))
	code, err := box.Run(t.Context(), &sandbox.Cmd{Args: []string{"bin/true"}, User: "12345:12345"})
	require.ErrorIs(t, err, fs.ErrPermission)
	require.Equal(t, 126, code)
}
