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
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// program is this test's binary. If asProgram is set in the environment, the binary is the program.
// So the linker has only one binary to make.
var program = os.Args[0]

const asProgram = "SANDSHELL_TEST_QUICKSTART"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Setenv(asProgram, "1") // for the programs that the tests start
	os.Exit(m.Run())
}

// take runs the program without a terminal and with a temporary directory of its own, and returns
// its transcript.
func take(t *testing.T, args ...string) (transcript string, err error) {
	t.Helper()
	temp := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	// After an interrupt, the program closes its box.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
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

// inOrder checks that the transcript matches the patterns, one after the other.
func inOrder(t *testing.T, transcript string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		at := regexp.MustCompile("(?m)" + p).FindStringIndex(transcript)
		require.NotNilf(t, at, "%s is not in the transcript, or not in its place", p)
		transcript = transcript[at[1]:]
	}
}

// chapters match a transcript from which no chapter is left out.
var chapters = []string{
	`^    hello from tour$`, `^    ok: 25 primes below 100$`, `^    … 40 lines …$`,
	`^primes is here: \d+ bytes`,
	`waiting for a line`, `typing "y\\n"`, `answers: "hello from the box\\n"$`, `job-1 is killed`,
	`connection refused$`,
	`exit status 130, .*timed out after`, `^    hello again$`, `^All as it should be`,
}

func TestLocal(t *testing.T) {
	t.Parallel()
	transcript, err := take(t, "-box", "local")
	require.NoError(t, err)
	require.NotContains(t, transcript, "\x1b", "standard output is not a terminal")
	inOrder(t, transcript, `^This is LocalBox: `)
	if strings.Contains(transcript, "Left out:") {
		inOrder(t, transcript, chapters[0], chapters[len(chapters)-1])
		return
	}
	inOrder(t, transcript, chapters...)
	excerpt(t, transcript)
}

// excerpt checks that docs/agents.md shows what the program prints.
func excerpt(t *testing.T, transcript string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/agents.md")
	require.NoError(t, err)
	_, text, found := bytes.Cut(text, []byte("prints, in part:\n\n"))
	require.True(t, found, "docs/agents.md has no transcript")
	lines, _, _ := bytes.Cut(text, []byte("\n\nA"))
	for line := range strings.Lines(string(lines)) {
		if line = strings.TrimSpace(line); line != "" {
			before, _, timed := strings.Cut(line, " after ")
			pattern := `^\s*` + regexp.QuoteMeta(before)
			if timed {
				pattern += ` after \d`
			}
			inOrder(t, transcript, pattern)
		}
	}
}

func TestDocker(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, testImage)
	transcript, err := take(t, "-box", "docker")
	require.NoError(t, err)
	inOrder(t, transcript, append([]string{`^This is DockerSSHBox: `}, chapters...)...)
}

// TestColours takes the tour on the terminal of a box, with a recording.
func TestColours(t *testing.T) {
	t.Parallel()
	box, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	defer box.Close()
	var raw bytes.Buffer
	for _, c := range []struct {
		environment string
		coloured    bool
	}{{"TMPDIR=$PWD", true}, {"TMPDIR=$PWD NO_COLOR=1", false}, {"TMPDIR=$PWD TERM=dumb", false}} {
		raw.Reset()
		res, err := box.Execute(t.Context(), c.environment+" "+program+
			" -box local -record tour.cast", sandbox.Tee(&raw), sandbox.Timeout(2*time.Minute))
		require.NoError(t, err)
		require.Zero(t, res.ExitCode, res.Output)
		require.Equal(t, c.coloured, strings.Contains(raw.String(),
			"\x1b[1m== 1. The shell remembers\x1b[0m"))
		require.Equal(t, c.coloured, strings.Contains(raw.String(), "\x1b[3"))
		require.Contains(t, res.Output, "asciinema play tour.cast")
		cast, err := os.ReadFile(filepath.Join(box.Dir(), "tour.cast"))
		require.NoError(t, err)
		require.Contains(t, string(cast), `"main: mkdir tour && cd tour && greeting=hello"`)
		require.Contains(t, string(cast), `"y\n"`)
		require.Contains(t, string(cast), `"job-1: exit status 129 after `)
	}
}

func TestAutoWithoutAnEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "no-engine.sock"))
	transcript, err := take(t)
	require.NoError(t, err)
	inOrder(t, transcript, `^This is LocalBox: .*There is no container because: .*no-engine.sock`,
		`^All as it should be`)
}

func TestMisuse(t *testing.T) {
	for _, c := range []struct{ name, says, args string }{
		{"Box", `-box is "cloud": give auto, docker or local`, "-box cloud"},
		{"Argument", `it takes only flags (-help lists them), not ["docker"]`, "docker"},
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

// TestInterrupted interrupts the tour. Nothing stays behind.
func TestInterrupted(t *testing.T) {
	t.Run("Local", func(t *testing.T) {
		interrupt(t, "local", "while :; do :; done")
	})
	t.Run("Docker", func(t *testing.T) {
		engine := dockertest.Engine(t, testImage)
		pid := interrupt(t, "docker", "greeting=hello")
		list, err := engine.ContainerList(t.Context(), client.ContainerListOptions{
			All: true, Filters: make(client.Filters).Add("label",
				fmt.Sprintf("sandshell.pid=%d", pid)),
		})
		require.NoError(t, err)
		require.Empty(t, list.Items, "containers left behind")
	})
}

// interrupt runs the program, and interrupts it when text is in its transcript.
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

// A trigger is a buffer that closes reached when text is in it.
type trigger struct {
	buf     bytes.Buffer // not embedded, because io.Copy would use its ReadFrom
	text    string
	reached chan struct{}
	done    bool // whether reached is closed
}

func (w *trigger) Write(p []byte) (int, error) {
	w.buf.Write(p)
	if !w.done && strings.Contains(w.buf.String(), w.text) {
		w.done = true
		close(w.reached)
	}
	return len(p), nil
}
