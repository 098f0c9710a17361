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
	"github.com/sandshell/sandshell/sandbox"
)

// imageOf skips the test where there is no engine or no such image, as docker does.
func imageOf(t testing.TB, name string) *client.Client {
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

// newBox makes a box that the test's end closes.
func newBox(t testing.TB, c Config) *DockerSSHBox {
	t.Helper()
	imageOf(t, c.Image)
	most := time.Minute
	if len(c.Plugins) > 0 {
		most = 10 * time.Minute // setups download: a mirror may be slow
	}
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	box, err := New(ctx, c)
	noError(t, err)
	t.Cleanup(func() { noError(t, box.Close()) })
	return box
}

// does executes a command in a session, and expects its status and output.
func does(t testing.TB, s sandbox.Session, command string, status int, output string) {
	t.Helper()
	r, err := s.Execute(t.Context(), command, sandbox.Timeout(30*time.Second))
	if err != nil {
		t.Fatalf("%s: %v; %+v", command, err, r)
	}
	if r.State != sandbox.Exited || r.ExitCode != status || r.Output != output {
		t.Errorf("%s: got %+v, want status %d and %q", command, r, status, output)
	}
}

// runs runs a script without a session, and returns what it printed.
func runs(t testing.TB, box sandbox.Sandbox, script string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code, err := box.Run(t.Context(), &sandbox.Cmd{Args: append(
		[]string{"/bin/sh", "-c", script, "sh"}, args...), Stdout: &out, Stderr: &errs})
	if code != 0 || err != nil || errs.Len() > 0 {
		t.Fatalf("%s: %d, %v, %q, %q", script, code, err, out.String(), errs.String())
	}
	return out.String()
}

// census counts the processes of the box by name, without the one that counts. It takes a shell's
// builtins alone. Zombies do not count: busybox's ash waits for a command substitution's shell of
// its prompt when it has the next command.
func census(t testing.TB, box sandbox.Sandbox) map[string]int {
	t.Helper()
	all := map[string]int{}
	for name := range strings.Lines(runs(t, box, `for p in /proc/[0-9]*; do
		if [ "$p" != /proc/$$ ] && { read -r pid name state rest <$p/stat; } 2>/dev/null && [ "$state" != Z ]; then echo "$name"; fi; done`)) {
		all[strings.Trim(name, "()\n")]++
	}
	return all
}

// onlySessions waits until nothing runs but boxd, as init and as the end of the connection, and the
// shells of n sessions.
func onlySessions(t testing.TB, box sandbox.Sandbox, n int) {
	t.Helper()
	var got map[string]int
	end := time.Now().Add(10 * time.Second)
	for {
		got = census(t, box)
		if got["boxd"] == 2 && got["sh"]+got["bash"] == n && len(got) == 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("besides %d sessions there run %v", n, got)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// wentAway expects that nothing is left of a box that was closed.
func wentAway(t *testing.T, box *DockerSSHBox) {
	t.Helper()
	if _, err := testEngine(t).ContainerInspect(t.Context(), box.ContainerID(),
		client.ContainerInspectOptions{}); !errdefs.IsNotFound(err) {
		t.Errorf("the container is there after Close: %v", err)
	}
}

// limit is a generous limit against hanging.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func exited(t testing.TB, r *sandbox.Result, err error, want string) {
	t.Helper()
	noError(t, err)
	if r.State != sandbox.Exited || r.ExitCode != 0 || r.Restarted || r.Output != want {
		t.Fatalf("got %.200v, want output %q", r, want)
	}
}
