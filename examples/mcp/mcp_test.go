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
	"github.com/sandshell/sandshell/localbox"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain is the example itself where a test has started it as a server.
func TestMain(m *testing.M) {
	if os.Getenv("SANDSHELL_TEST_MCP") != "" {
		os.Unsetenv("SANDSHELL_TEST_MCP") // of its commands it is none
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// limit is against hanging.
const limit = time.Minute

// server is the command of the example with these flags, in a directory of its own.
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
		test(t, server(t, "-linger", "1s")) // what a server that is killed leaves ends by itself
	})
}

// A client in another language, by plain JSON-RPC, finds a bug, fixes it and runs the tests.
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

// A scripted agent with the SDK's client.
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

// calls calls a tool, with arguments by names and values in turn, and returns the text.
func (a agent) calls(tool string, kv ...any) string {
	a.t.Helper()
	args := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		args[kv[i].(string)] = kv[i+1]
	}
	r, err := a.CallTool(a.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	require.NoError(a.t, err)
	text := r.Content[0].(*sdk.TextContent).Text
	if before, _, on := strings.Cut(text, "[still running"); on { // on a busy machine
		return before + a.calls("wait")
	}
	return text
}

func (a agent) copies(file string) {
	content, err := os.ReadFile("testdata/task/" + file)
	require.NoError(a.t, err)
	require.Contains(a.t, a.calls("write", "path", "project/"+file, "content", string(content)),
		"[wrote ")
}

// The SDK's client does the same, with wrong calls, a cancelled one and a server that is killed in
// between.
func TestSDKClient(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, server *exec.Cmd) {
		a := start(t, server)
		a.copies("stats.py")
		a.copies("test_stats.py")
		a.calls("run", "command", "cd project; mkfifo going")
		require.Contains(t, a.calls("run", "command", "python3 -B test_stats.py"),
			"FAILED (failures=1)")

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := a.CallTool(ctx, &sdk.CallToolParams{Name: "run",
				Arguments: map[string]any{"command": "echo >going; sleep 1000", "seconds": 1000}})
			ended <- err
		}()
		a.calls("job_start", "command", "cat going")
		a.calls("job_wait", "job", "job-1")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Eventually(t, func() bool {
			return strings.HasSuffix(a.calls("run", "command", "pwd"), "/project\n")
		}, limit, time.Millisecond,
			"once the command is interrupted")

		require.Contains(t, a.calls("run", "comand", "pwd"), `"comand"`)
		require.Contains(t, a.calls("rum", "command", "pwd"), "rum")
		require.NoError(t, server.Process.Kill())
		_, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "look"})
		require.Error(t, err)
		a.Close()                           // waits for the server's end
		_, err = localbox.Reap(t.Context()) // what the box of this machine has left
		require.NoError(t, err)
		again := exec.Command(server.Path, server.Args[1:]...)
		again.Env, again.Dir, again.Stderr = server.Env, server.Dir, server.Stderr
		a = start(t, again) // where the box was a container, it is another one
		a.copies("stats.py")
		a.copies("test_stats.py")
		a.calls("run", "command", "cd project")

		require.Contains(t, a.calls("run", "command", "grep -n middle stats.py"),
			"13:    return (ordered[middle] + ordered[middle + 1]) / 2")
		require.Contains(t, a.calls("edit", "path", "stats.py", "old", "middle + 1", "new",
			"middle"), "[replaced in stats.py at line 13]")
		require.Contains(t, a.calls("run", "command", "python3 -B test_stats.py"),
			"FAILED (failures=1)", "a wrong repair")
		require.Contains(t, a.calls("edit", "path", "stats.py", "old", "ordered[middle] + ", "new",
			"ordered[middle - 1] + "), "at line 13]")
		require.Contains(t, a.calls("run", "command", "python3 -B test_stats.py"), "\nOK\n")
	})
}

// A server that is killed leaves no container; one that its client leaves, none at once.
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
	require.Equal(t, "hi\n", a.calls("run", "command", "echo hi"))
	require.Equal(t, 1, containers(cmd))
	require.NoError(t, cmd.Process.Kill())
	_, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "look"})
	require.Error(t, err)
	require.Eventually(t, func() bool { return containers(cmd) == 0 }, limit, 100*time.Millisecond)

	cmd = server(t)
	a = start(t, cmd)
	require.Equal(t, "hi\n", a.calls("run", "command", "echo hi"))
	require.NoError(t, a.Close())
	require.Zero(t, containers(cmd))
}

// Over HTTP each client has a box of its own, and the end of the server is the end of all.
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
		require.Empty(t, one.calls("run", "command", "X=one"))
		require.Equal(t, "\n", two.calls("run", "command", "echo $X"))
		require.Equal(t, "one\n", one.calls("run", "command", "echo $X"))
		require.NoError(t, two.Close())
		require.NoError(t, server.Process.Signal(os.Interrupt))
		require.NoError(t, server.Wait())
		one.Close()
	})
}
