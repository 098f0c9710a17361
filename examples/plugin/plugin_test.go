package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// take runs the example, and checks that its transcript matches the patterns, one after the other.
func take(t *testing.T, kind string, patterns ...string) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), kind, testImage, &out)
	require.NoError(t, err, out.String())
	transcript := out.String()
	for _, p := range append(patterns, `^\$ checkpoint before$`, `^checkpoint before: 1 files$`,
		`^back at before$`, `^notes\nit works$`,
		`^failed to install flying on .*: looking for wings\nthere are none$`,
		`^\(of flying, exit status 4\)$`) {
		at := regexp.MustCompile("(?m)" + p).FindStringIndex(transcript)
		require.NotNilf(t, at, "%s is not in the transcript, or not in its place:\n%s", p,
			out.String())
		transcript = transcript[at[1]:]
	}
	require.Equal(t, 1, strings.Count(out.String(), "checkpoints are kept in"),
		"setup.sh runs once")
}

func TestLocal(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	take(t, "local", `^== Setting up, in LocalBox$`, `^in LocalBox, checkpoints are kept in /`)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left, "left in the temporary directory")
}

func TestDocker(t *testing.T) {
	dockertest.Engine(t, testImage)
	take(t, "docker", `^== Setting up, in DockerSSHBox$`,
		`^in DockerSSHBox, checkpoints are kept in /`)
}

func TestAutoWithoutAnEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "no-engine.sock"))
	take(t, "auto", `^== Setting up, in LocalBox$`)
}

func TestMisuse(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), "cloud", testImage, &strings.Builder{}),
		`-box is "cloud": give auto, docker or local`)
}
