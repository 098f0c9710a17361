package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	testenv.NeedsAll(t, "to install Chromium in a container takes a minute or two")
	dockertest.Engine(t, dockertest.Image)
	shot := filepath.Join(t.TempDir(), "shot.png")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), dockertest.Image, shot, &out), out.String())
	require.Contains(t, out.String(), `textbox "Your name" value="Zoë" focused ref=`)
	require.Contains(t, out.String(), "Zoë was here")
	data, err := os.ReadFile(shot)
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, 800, img.Bounds().Dx())
	require.Equal(t, 400, img.Bounds().Dy())
}

func TestNoEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///no/such/docker.sock")
	err := run(t.Context(), dockertest.Image, filepath.Join(t.TempDir(), "shot.png"),
		&bytes.Buffer{})
	require.ErrorContains(t, err, "docker")
	t.Log(err)
}
