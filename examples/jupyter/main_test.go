package main

import (
	"bytes"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

func take(t *testing.T, kind string) {
	file := filepath.Join(t.TempDir(), "plot.png")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), kind, testImage, file, &out))
	require.Regexp(t,
		`^This is (LocalBox|DockerSSHBox)\.\n201 angles\nThe sine is at most 1\.0\nThe plot is in `,
		out.String())
	require.Regexp(t, `execute_cli exited with 1:\n(?s).*IndexError: list index out of range\n$`,
		out.String())
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	figure, err := png.Decode(f)
	require.NoError(t, err)
	require.Greater(t, figure.Bounds().Dx(), 200)
}

func TestDocker(t *testing.T) {
	testenv.NeedsFull(t, "to install Jupyter and matplotlib in a container takes two minutes, "+
		"and plugin/jupyter's TestBoxes and TestConfined install Jupyter too")
	dockertest.Engine(t, testImage)
	take(t, "docker")
}

func TestLocal(t *testing.T) {
	if os.Getenv("CI") != "true" && exec.Command("/usr/bin/python3", "-c",
		"import ipykernel, jupyter_client, matplotlib").Run() != nil {
		t.Skip("/usr/bin/python3 lacks some of: apt-get install python3-ipykernel " +
			"python3-jupyter-client python3-matplotlib")
	}
	take(t, "local")
}

func TestMisuse(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), "cloud", testImage, "", nil),
		`-box is "cloud": give auto, docker or local`)
}

func TestPrintable(t *testing.T) {
	require.Equal(t, "é \u304a\t�]0;title�\n�31m�", printable(
		"é \u304a\t\x1b]0;title\x07\n\u009b31m\u202e"))
}
