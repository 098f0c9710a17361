package localbox_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
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
	if c.Logger == nil {
		c.Logger = testenv.Logger(t)
	}
	box, err := localbox.New(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { box.Close() })
	return box
}

// TestConformance runs the suite in each shell that sandshell promises to work with, if this
// machine has it.
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
				// TestConformanceSSHBox runs the other fourth of Zoo.
				opts = testenv.Suite(sandboxtest.Fourths(0, 1, 3))
			case shell == "bash":
				// make test runs the other groups once too: over an sshd and in a container.
				opts = testenv.Suite(testenv.Some("Syntax", "State", "ShellEnd", "Time",
					"Concurrency", "Adversary"))
			case shell == "dash":
				opts = testenv.Suite(testenv.Some("Syntax", "State")) // these depend on the shell
			case shell == "busybox ash":
				testenv.NeedsAll(t, "dash, which is similar, runs every day")
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
	require.Equal(t, os.ModeDir|0o700, info.Mode())
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
			`localbox: Config.Dir: "/does/not/exist": no such file or directory: give an`},
		{"NotADir", localbox.Config{Dir: "/dev/null"}, syscall.ENOTDIR,
			`"/dev/null": not a directory`},
		{"NoShell", localbox.Config{Shell: []string{"no-such-shell"}}, exec.ErrNotFound,
			"open main: no-such-shell: no such program: install it, or leave Shell out"},
		{"EmptyShell", localbox.Config{Shell: []string{""}}, nil,
			"localbox: Config.Shell: its first element is empty: give the shell's name"},
		{"Env", localbox.Config{Env: []string{"A"}}, nil, `localbox: Config.Env[0]: "A" has no "="`},
		{"Grace", localbox.Config{Grace: -time.Second}, nil,
			"localbox: Config.Grace: -1s is negative: 0 stands for 1s"},
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

// TestWrongCalls: the errors of calls say what to do.
func TestWrongCalls(t *testing.T) {
	ctx, box := t.Context(), open(t, localbox.Config{})
	_, err := box.Input(ctx, "x")
	require.ErrorContains(t, err, "no command is unfinished: Execute one first")
	_, err = box.Execute(ctx, "sleep 1000", sandbox.Timeout(time.Second))
	require.ErrorIs(t, err, sandbox.ErrTimeout)
	require.ErrorContains(t, err, "in main: command timed out after 1s")
	_, err = box.Execute(ctx, "sleep 1000", sandbox.Yield(time.Millisecond))
	require.NoError(t, err)
	run := func(cmd *sandbox.Cmd) error { _, err := box.Run(ctx, cmd); return err }
	open := func(o sandbox.SessionOption) error { _, err := box.Open(ctx, o); return err }
	execute := func() error { _, err := box.Execute(ctx, "true"); return err }
	for _, c := range []struct {
		err  error
		is   error
		says string
	}{
		{execute(), sandbox.ErrBusy,
			"a command is unfinished: Wait, Input or Interrupt it, or Open a second session"},
		{run(nil), nil, "run: the Cmd is nil"},
		{run(&sandbox.Cmd{}), nil, "run: Cmd.Args holds no program"},
		{run(&sandbox.Cmd{Args: []string{"true"}, Env: []string{"=x"}}), nil,
			"run true: Cmd.Env[0]: it has no name"},
		{open(sandbox.Env("A=1", "FOO")), nil, `Env[1]: "FOO" has no "=": want NAME=value`},
		{open(sandbox.User("nobodyy")), user.UnknownUserError("nobodyy"),
			`become user "nobodyy": there is no such user`},
		{box.CopyTo(ctx, "/etc/passwd", "/nope/x"), fs.ErrNotExist, ": make this directory first"},
		{box.CopyFrom(ctx, "/etc/passwd", "/nope/x"), fs.ErrNotExist,
			": make this directory first"},
	} {
		require.ErrorContains(t, c.err, c.says)
		if c.is != nil {
			require.ErrorIs(t, c.err, c.is)
		}
	}
}

func TestCanceledStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := localbox.New(ctx, localbox.Config{})
	require.True(t, errors.Is(err, context.Canceled), "%v", err)
}

// TestUserRelativeProgram checks that Run looks for a program with a relative path only in the
// box's directory, even if the user may not execute it.
func TestUserRelativeProgram(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can run programs as other users")
	}
	box := open(t, localbox.Config{Dir: t.TempDir()})
	require.NoError(t, box.Files().MkdirAll(t.Context(), "bin", 0o755))
	// /bin/true exists too, but Run must not execute it.
	require.NoError(t, box.Files().WriteFile(t.Context(), "bin/true", []byte("#!/bin/sh\n"), 0o644))
	code, err := box.Run(t.Context(), &sandbox.Cmd{Args: []string{"bin/true"}, User: "12345:12345"})
	require.ErrorIs(t, err, fs.ErrPermission)
	require.Equal(t, 126, code)
}
