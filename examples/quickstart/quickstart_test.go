package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/dockertest"
	"github.com/sandshell/sandshell/internal/testenv"
	"github.com/stretchr/testify/require"
)

var program string

// TestMain builds the program, as a user would have it.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "quickstart-")
		if err == nil {
			defer os.RemoveAll(dir)
			program = filepath.Join(dir, "quickstart")
			var out []byte
			if out, err = exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
				err = fmt.Errorf("go build: %w\n%s", err, out)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// take runs the program without a terminal and with a temporary directory of its own, and returns its transcript.
func take(t *testing.T, args ...string) (transcript string, err error) {
	t.Helper()
	temp := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it closes its box
	cmd.WaitDelay = 30 * time.Second
	out, err := cmd.CombinedOutput()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("quickstart %s:\n%s", strings.Join(args, " "), out)
		}
	})
	left, readErr := os.ReadDir(temp)
	require.NoError(t, readErr)
	require.Empty(t, left, "left in the temporary directory")
	return string(out), err
}

// inOrder checks that the transcript has all these, one after the other.
func inOrder(t *testing.T, transcript string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		at := regexp.MustCompile("(?m)" + p).FindStringIndex(transcript)
		require.NotNilf(t, at, "%s is not in the transcript, or not in its place", p)
		transcript = transcript[at[1]:]
	}
}

func TestLocal(t *testing.T) {
	transcript, err := take(t, "-box", "local")
	require.NoError(t, err)
	inOrder(t, transcript, `^This is LocalBox: `, `^    hello from tour$`)
	if !strings.Contains(transcript, "Left out:") {
		inOrder(t, transcript, `waiting for a line$`, `^    ok: 25 primes below 100$`, `same SHA-256`, `answers: hello from the box$`,
			`job-1 is killed`, `connection refused$`, `exited with 130 .*timed out$`, `^    hello again$`)
	}
	inOrder(t, transcript, `^All as it should be`)
}

func TestDocker(t *testing.T) {
	testenv.NeedsAll(t, "it installs a package in a container; TestLocal takes the same tour every day")
	dockertest.Engine(t, testImage)
	transcript, err := take(t, "-box", "docker")
	if err != nil && strings.Contains(transcript, `"apt-get -q update" is exited`) {
		if os.Getenv("SANDSHELL_REQUIRE_DOCKER") == "1" {
			t.Fatal("apt-get update has failed: the container reaches no Debian mirror")
		}
		t.Skip("the container reaches no Debian mirror")
	}
	require.NoError(t, err)
	inOrder(t, transcript, `^This is DockerSSHBox: `, `^    hello from tour$`, `continue\? \[Y/n\] $`, `waiting for a line$`,
		`^    OK. Now you can run make.$`, `^    tests completed successfully.$`, `same SHA-256`, `answers: hello from the box$`,
		`job-1 is killed`, `connection refused$`, `exited with 130 .*timed out$`, `^    hello again$`, `^All as it should be`)
}

func TestAutoWithoutAnEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "no-engine.sock"))
	transcript, err := take(t)
	require.NoError(t, err)
	inOrder(t, transcript, `^This is LocalBox: .*There is no container because: .*no-engine.sock`, `^All as it should be`)
}

func TestMisuse(t *testing.T) {
	for _, c := range []struct{ name, says, args string }{
		{"Box", `-box is "cloud": it can be auto, docker or local`, "-box cloud"},
		{"Argument", `unexpected argument "docker"`, "docker"},
		{"NoEngine", "no Docker engine answers at unix:///nowhere", "-box docker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("DOCKER_HOST", "unix:///nowhere")
			transcript, err := take(t, strings.Fields(c.args)...)
			require.Error(t, err)
			require.Contains(t, transcript, c.says)
		})
	}
}

// TestInterrupted presses ^C in the middle of the tour: nothing stays behind.
func TestInterrupted(t *testing.T) {
	t.Run("Local", func(t *testing.T) {
		interrupt(t, "local", "while :; do :; done")
	})
	t.Run("Docker", func(t *testing.T) {
		engine := dockertest.Engine(t, testImage)
		pid := interrupt(t, "docker", "export GREETING")
		list, err := engine.ContainerList(t.Context(), client.ContainerListOptions{
			All: true, Filters: make(client.Filters).Add("label", fmt.Sprintf("sandshell.pid=%d", pid)),
		})
		require.NoError(t, err)
		require.Empty(t, list.Items, "containers left behind")
	})
}

// interrupt runs the program until text is in its transcript, and interrupts it.
func interrupt(t *testing.T, box, text string) (pid int) {
	t.Helper()
	temp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "-box", box)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	seen := &trigger{text: text, reached: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = seen, seen
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-seen.reached:
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
	case err := <-ended:
		ended <- err
	}
	err := <-ended
	transcript := seen.buf.String()
	var exit *exec.ExitError
	require.ErrorAsf(t, err, &exit, "%s", transcript)
	require.Equal(t, 130, exit.ExitCode(), transcript)
	require.Contains(t, transcript, "quickstart: interrupted; the box is closed")
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left, "left in the temporary directory")
	return cmd.Process.Pid
}

// A trigger is a buffer that tells when text is in it.
type trigger struct {
	buf     bytes.Buffer // not embedded: io.Copy would use its ReadFrom
	text    string
	reached chan struct{}
	told    bool
}

func (w *trigger) Write(p []byte) (int, error) {
	w.buf.Write(p)
	if !w.told && strings.Contains(w.buf.String(), w.text) {
		w.told = true
		close(w.reached)
	}
	return len(p), nil
}
