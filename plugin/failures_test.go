package plugin_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, b box) {
		for _, c := range []struct {
			name    string
			plugin  plugin.Plugin
			message string // a part of the error
			code    int
		}{
			{"Exit", plugin.Plugin{Files: setup("echo one", "echo cannot do it >&2", "exit 7")},
				"failed to install exit on " + b.String() + ": one\ncannot do it", 7},
			{"Silent", plugin.Plugin{Files: setup("exit 7")},
				"setup.sh ended with exit status 7 and printed nothing", 7},
			{"NotExecutable", plugin.Plugin{Files: files("setup.sh", "#!/bin/sh\n./data\n", "data",
				"echo\n")}, "ermission denied", 126},
			{"NoInterpreter", plugin.Plugin{Files: files("setup.sh", "#!/nowhere/sh\n")},
				"/nowhere/sh: ", 127},
			{"MissingFile", plugin.Plugin{Files: setup("cat missing")}, "No such file", 1},
			{"Hang", plugin.Plugin{Files: setup("echo working", "sleep 1000"),
				Timeout: 500 * time.Millisecond}, "setup.sh took longer than 500ms", -1},
			{"Asks", plugin.Plugin{Files: setup("printf 'continue? [Y/n] '", "read -r x")},
				"asks for input, and nobody answers: continue? [Y/n]", -1},
			{"KillsItsShell", plugin.Plugin{Files: setup("kill -9 $PPID", "sleep 1000")},
				"ended the shell that ran it", -1},
			{"NoNetwork", plugin.Plugin{Files: setup("echo fetching",
				"wget -q -O x http://127.0.0.1:9/x || nc 127.0.0.1 9 || { echo no network; exit "+
					"4; }")}, "no network", 4},
			{"MuchOutput", plugin.Plugin{Files: setup("head -c 10000000 /dev/zero | tr '\\0' x",
				"echo", "echo at last", "exit 1")}, "at last", 1},
			{"Check", plugin.Plugin{Files: setup("echo fine"), Check: "echo but no; exit 9"},
				`setup.sh ended with 0, but the check fails: "echo but no; exit 9" ended with exit status 9: but no`, 0},
			{"OnlyACheck", plugin.Plugin{Check: "exit 9"},
				"its check fails, and it has no Files to set it up with", -1},
			{"SlowCheck", plugin.Plugin{Files: setup("true"), Check: "sleep 1000",
				Timeout: 500 * time.Millisecond}, `"sleep 1000" took longer than 500ms`, 0},
			{"BadEnv", plugin.Plugin{Files: setup(`echo 'no variable' >>"$SANDSHELL_ENV"`)},
				`line 1: "no variable" is not NAME=value`, 0},
			{"BadPath", plugin.Plugin{Files: setup(`echo bin >>"$SANDSHELL_PATH"`)},
				`"bin" is not an absolute path`, 0},
			{"LeavesADaemon", plugin.Plugin{Files: setup("sleep 1234 &", "exit 1")},
				"exit status 1", 1},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.plugin.Name = strings.ToLower(c.name)
				_, err := b.Execute(t.Context(), "X=stays")
				require.NoError(t, err)
				err = b.InitPlugins(t.Context(), c.plugin,
					plugin.Plugin{Name: "dependent", Requires: []string{c.plugin.Name},
						Files: setup("exit 99")})
				var failed *plugin.Error
				require.ErrorAs(t, err, &failed)
				require.Equal(t, c.plugin.Name, failed.Plugin)
				require.Equal(t, b.String(), failed.Box)
				require.Equal(t, c.code, failed.ExitCode)
				require.ErrorContains(t, err, c.message)
				require.ErrorContains(t, err, "failed to install dependent on "+b.String()+
					": it requires "+c.plugin.Name+", which has failed")
				require.Equal(t, c.name == "Hang" || c.name == "SlowCheck",
					errors.Is(err, sandbox.ErrTimeout))
				if c.name == "MuchOutput" {
					require.Less(t, len(err.Error()), 5000)
					require.EqualValues(t, 10000000+len("\nat last\n"),
						int64(len(failed.Output))+failed.Omitted)
				}
				// The box is usable, and nothing of the plugin is left.
				require.Equal(t, "stays\n", outputOf(t, b, "echo $X"))
				require.Equal(t, "", outputOf(t, b, "ls -A ~/.sandshell/plugins "+
					"/var/tmp/.sandshell/plugins /tmp/.sandshell/plugins 2>/dev/null | grep "+
					c.plugin.Name))
			})
		}
	})
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, "sandshell-test")
	b, err := sshbox.New(t.Context(), sshbox.Config{
		Image: "sandshell-test", Network: "none", Env: []string{"HOME=/small"},
		Mounts: []sshbox.Mount{{Type: sshbox.Tmpfs, Target: "/small", Size: 60 << 20}},
	})
	require.NoError(t, err)
	defer b.Close()
	err = b.InitPlugins(t.Context(), plugin.Plugin{Name: "big",
		Files: setup("head -c 200000000 /dev/zero >big")})
	require.ErrorContains(t, err, "No space left on device")
	require.Equal(t, "ok\n", outputOf(t, b, "head -c 50000000 /dev/zero >/small/x && echo ok"))
	require.Empty(t, outputOf(t, b, "ls -A /small/.sandshell/plugins"))
}

func TestBusyAndCancel(t *testing.T) {
	t.Parallel()
	b, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	defer b.Close()
	res, err := b.Execute(t.Context(), "cat")
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, res.State)
	p := plugin.Plugin{Name: "p", Files: setup("echo begun", "sleep 1000")}
	require.ErrorIs(t, b.InitPlugins(t.Context(), p), sandbox.ErrBusy)
	_, err = b.Interrupt(t.Context())
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	p.Output = onWrite(func() {
		// A call that waits for this one ends with its own ctx.
		short, end := context.WithTimeout(t.Context(), time.Millisecond)
		defer end()
		err := b.InitPlugins(short, plugin.Plugin{Name: "q", Check: "true"})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "install plugins: another call has not returned: ")
		cancel()
	})
	require.ErrorIs(t, b.InitPlugins(ctx, p), context.Canceled)
	dir, err := b.PluginDir()
	require.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, "ok\n", outputOf(t, b, "echo ok"))
}

// onWrite returns a writer that calls f at its first Write.
func onWrite(f func()) *writer { return &writer{f: f} }

type writer struct {
	once sync.Once
	f    func()
}

func (w *writer) Write(p []byte) (int, error) {
	w.once.Do(w.f)
	return len(p), nil
}
