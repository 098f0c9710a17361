package sshbox

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// needImage returns a client of the engine. Like testEngine, it skips the test if there is no
// engine, or not this image.
func needImage(t testing.TB, name string) *client.Client {
	t.Helper()
	d := testEngine(t)
	if _, err := d.ImageInspect(t.Context(), name); err != nil {
		if os.Getenv("SANDSHELL_REQUIRE_DOCKER") == "1" {
			t.Fatal(err)
		}
		t.Skipf("no image %s (make image): %v", name, err)
	}
	return d
}

// newBox makes a box, which it closes when the test ends.
func newBox(t testing.TB, c Config) *DockerSSHBox {
	t.Helper()
	if c.Snapshot == "" {
		needImage(t, c.Image)
	}
	timeout := time.Minute
	if len(c.Plugins) > 0 {
		timeout = 10 * time.Minute // setups download, and a mirror may be slow
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	box, err := New(ctx, c)
	noError(t, err)
	t.Cleanup(func() { noError(t, box.Close()) })
	return box
}

// expect executes a command in a session, and expects this status and output.
func expect(t testing.TB, s sandbox.Session, command string, status int, output string) {
	t.Helper()
	r, err := s.Execute(t.Context(), command, sandbox.Timeout(30*time.Second))
	if err != nil {
		t.Fatalf("%s: %v; %+v", command, err, r)
	}
	if r.State != sandbox.Exited || r.ExitCode != status || r.Output != output {
		t.Errorf("%s: got %+v, want status %d and %q", command, r, status, output)
	}
}

// script runs a script by Run, outside of any session, and returns what it has printed.
func script(t testing.TB, box sandbox.Sandbox, script string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code, err := box.Run(t.Context(), &sandbox.Cmd{Args: append(
		[]string{"/bin/sh", "-c", script, "sh"}, args...), Stdout: &out, Stderr: &errs})
	if code != 0 || err != nil || errs.Len() > 0 {
		t.Fatalf("%s: %d, %v, %q, %q", script, code, err, out.String(), errs.String())
	}
	return out.String()
}

// processCounts counts the processes of the box by name, without the one that counts. It needs
// nothing in the box but a shell with builtins. It does not count zombies, because busybox's ash
// reaps the shell of a command substitution in its prompt only at the next command.
func processCounts(t testing.TB, box sandbox.Sandbox) map[string]int {
	t.Helper()
	all := map[string]int{}
	for name := range strings.Lines(script(t, box, `for p in /proc/[0-9]*; do
		if [ "$p" != /proc/$$ ] && { read -r pid name state rest <$p/stat; } 2>/dev/null && [ "$state" != Z ]; then echo "$name"; fi; done`)) {
		all[strings.Trim(name, "()\n")]++
	}
	return all
}

// wantSessions waits until the only processes are two of boxd, which are init and the end of the
// connection, and the shells of n sessions.
func wantSessions(t testing.TB, box sandbox.Sandbox, n int) {
	t.Helper()
	var got map[string]int
	end := time.Now().Add(testenv.Limit)
	for {
		got = processCounts(t, box)
		if got["boxd"] == 2 && got["sh"]+got["bash"] == n && len(got) == 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("want boxd and %d sessions, got %v", n, got)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// wantRemoved expects that the container of a closed box does not exist.
func wantRemoved(t *testing.T, box *DockerSSHBox) {
	t.Helper()
	if _, err := testEngine(t).ContainerInspect(t.Context(), box.ContainerID(),
		client.ContainerInspectOptions{}); !errdefs.IsNotFound(err) {
		t.Errorf("the container still exists after Close: %v", err)
	}
}

// testContext returns a context that ends a test that hangs.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
	t.Cleanup(cancel)
	return ctx
}

// wantExited expects a result of a command that has succeeded with this output.
func wantExited(t testing.TB, r *sandbox.Result, err error, want string) {
	t.Helper()
	noError(t, err)
	if r.State != sandbox.Exited || r.ExitCode != 0 || r.Restarted || r.Output != want {
		t.Fatalf("got %.200v, want output %q", r, want)
	}
}
