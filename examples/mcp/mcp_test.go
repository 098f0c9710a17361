package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain runs the program if a test has started this binary as a server.
func TestMain(m *testing.M) {
	if os.Getenv("SANDSHELL_TEST_MCP") != "" {
		os.Unsetenv("SANDSHELL_TEST_MCP") // its commands must not see it
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// limit is how long a test waits for what has to happen.
const limit = testenv.Limit

// server returns the command that starts the program with flags, in a directory of its own.
func server(t *testing.T, flags ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program, flags...)
	cmd.Env = append(os.Environ(), "SANDSHELL_TEST_MCP=1")
	cmd.Dir = t.TempDir()
	cmd.Stderr = os.Stderr
	return cmd
}

// each runs test with a server of each kind of box.
func each(t *testing.T, test func(t *testing.T, server *exec.Cmd)) {
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		test(t, server(t, "-local"))
	})
	t.Run("docker", func(t *testing.T) {
		t.Parallel()
		dockertest.Engine(t, dockertest.Image)
		test(t, server(t, "-linger", "1s")) // the container of a killed server ends by itself
	})
}

// TestPlainClient lets a client in Python, with plain JSON-RPC, find a bug, fix it and run the
// tests.
func TestPlainClient(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, server *exec.Cmd) {
		dir, err := os.Getwd()
		require.NoError(t, err)
		cmd := exec.Command("python3", append([]string{dir + "/testdata/client.py",
			dir + "/testdata/task", server.Path}, server.Args[1:]...)...)
		cmd.Env, cmd.Dir = server.Env, server.Dir
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, string(said))
		require.Equal(t, "done\n", string(said))
	})
}

// An agent follows a script, with the SDK's client.
type agent struct {
	t *testing.T
	*sdk.ClientSession
}

func start(t *testing.T, cmd *exec.Cmd) agent {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"},
		nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return agent{t, c}
}

// call calls a tool and returns the text. kv are the names and values of the arguments in turn.
func (a agent) call(tool string, kv ...any) string {
	a.t.Helper()
	args := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		args[kv[i].(string)] = kv[i+1]
	}
	r, err := a.CallTool(a.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	require.NoError(a.t, err)
	text := r.Content[0].(*sdk.TextContent).Text
	if before, _, on := strings.Cut(text, "[still running"); on { // the machine is busy
		return before + a.call("wait")
	}
	return text
}

// write writes a file of the task into the project.
func (a agent) write(file string) {
	content, err := os.ReadFile("testdata/task/" + file)
	require.NoError(a.t, err)
	require.Contains(a.t, a.call("write", "path", "project/"+file, "content", string(content)),
		"[wrote ")
}

// TestSDKClient does the same with the SDK's client. It makes wrong calls, cancels one, and kills
// the server in between.
func TestSDKClient(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, server *exec.Cmd) {
		a := start(t, server)
		a.write("stats.py")
		a.write("test_stats.py")
		a.call("run", "command", "cd project; mkfifo going")
		require.Contains(t, a.call("run", "command", "python3 -B test_stats.py"),
			"FAILED (failures=1)")

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := a.CallTool(ctx, &sdk.CallToolParams{Name: "run",
				Arguments: map[string]any{"command": "echo >going; sleep 1000", "seconds": 1000}})
			ended <- err
		}()
		a.call("job_start", "command", "cat going")
		a.call("job_wait", "job", "job-1")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Eventually(t, func() bool {
			return strings.HasSuffix(a.call("run", "command", "pwd"), "/project\n")
		}, limit, time.Millisecond, "the server refuses commands until the first is interrupted")

		require.Contains(t, a.call("run", "comand", "pwd"), `"comand"`)
		require.Contains(t, a.call("rum", "command", "pwd"), "rum")
		require.NoError(t, server.Process.Kill())
		_, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "look"})
		require.Error(t, err)
		a.Close()                           // waits for the server's end
		_, err = localbox.Reap(t.Context()) // removes what the LocalBox has left
		require.NoError(t, err)
		again := exec.Command(server.Path, server.Args[1:]...)
		again.Env, again.Dir, again.Stderr = server.Env, server.Dir, server.Stderr
		a = start(t, again) // in another container
		a.write("stats.py")
		a.write("test_stats.py")
		a.call("run", "command", "cd project")

		require.Contains(t, a.call("run", "command", "grep -n middle stats.py"),
			"13:    return (ordered[middle] + ordered[middle + 1]) / 2")
		require.Contains(t, a.call("edit", "path", "stats.py", "old", "middle + 1", "new",
			"middle"), "[replaced in stats.py at line 13]")
		require.Contains(t, a.call("run", "command", "python3 -B test_stats.py"),
			"FAILED (failures=1)", "the first change is wrong")
		require.Contains(t, a.call("edit", "path", "stats.py", "old", "ordered[middle] + ", "new",
			"ordered[middle - 1] + "), "at line 13]")
		require.Contains(t, a.call("run", "command", "python3 -B test_stats.py"), "\nOK\n")
	})
}

// TestKilled shows that the container of a killed server ends by itself, and that the container of
// a session is gone when its client has closed it.
func TestKilled(t *testing.T) {
	t.Parallel()
	engine := dockertest.Engine(t, dockertest.Image)
	containers := func(cmd *exec.Cmd) int {
		list, err := engine.ContainerList(t.Context(), client.ContainerListOptions{
			All: true, Filters: client.Filters{}.Add("label",
				fmt.Sprintf("sandshell.pid=%d", cmd.Process.Pid)),
		})
		require.NoError(t, err)
		return len(list.Items)
	}
	cmd := server(t, "-linger", "1s")
	a := start(t, cmd)
	require.Equal(t, "hi\n", a.call("run", "command", "echo hi"))
	require.Equal(t, 1, containers(cmd))
	require.NoError(t, cmd.Process.Kill())
	_, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "look"})
	require.Error(t, err)
	require.Eventually(t, func() bool { return containers(cmd) == 0 }, limit, 100*time.Millisecond)

	cmd = server(t)
	a = start(t, cmd)
	require.Equal(t, "hi\n", a.call("run", "command", "echo hi"))
	require.NoError(t, a.Close())
	require.Zero(t, containers(cmd))
}

// TestHTTP shows that each client over HTTP has a box of its own, and that the end of the server
// ends them all.
func TestHTTP(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, server *exec.Cmd) {
		server.Args = append(server.Args, "-listen", "127.0.0.1:0")
		server.Stderr = nil
		log, err := server.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, server.Start())
		var url string
		_, err = fmt.Fscanf(log, "serving %s\n", &url)
		require.NoError(t, err)
		connect := func() agent {
			c, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"},
				nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url}, nil)
			require.NoError(t, err)
			return agent{t, c}
		}
		one, two := connect(), connect()
		require.Equal(t, "[no output]\n", one.call("run", "command", "X=one"))
		require.Equal(t, "\n", two.call("run", "command", "echo $X"))
		require.Equal(t, "one\n", one.call("run", "command", "echo $X"))
		require.NoError(t, two.Close())
		require.NoError(t, server.Process.Signal(os.Interrupt))
		require.NoError(t, server.Wait())
		one.Close()
	})
}
