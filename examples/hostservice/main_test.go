package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func take(t *testing.T, kind, box string) {
	t.Helper()
	var out strings.Builder
	require.NoError(t, run(t.Context(), kind, testImage, &out), out.String())
	require.Contains(t, out.String(), " in "+box+"\n")
	require.Contains(t, out.String(), "== Outside, the answer is \"42\"\n")
}

func TestLocal(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	take(t, "local", "LocalBox")
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left, "left in the temporary directory")
}

func TestDocker(t *testing.T) {
	dockertest.Engine(t, testImage)
	take(t, "docker", "DockerSSHBox")
	dockertest.NoContainers(t)
}

func TestAutoWithoutAnEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "no-engine.sock"))
	take(t, "auto", "LocalBox")
}

func TestMisuse(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), "cloud", testImage, &strings.Builder{}),
		`-box is "cloud": give auto, docker or local`)
}
