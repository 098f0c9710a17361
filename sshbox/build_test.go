package sshbox

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// writeFiles writes files, whose contents it gets by name, into a new directory.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

// TestBuildImage shows that directories with the same content are built once, and that Prune
// removes what was built.
func TestBuildImage(t *testing.T) {
	d := dockertest.Engine(t, dockertest.Busybox)
	word := rand.Text() // which no other run has
	// Each line takes a container. What is built again comes last.
	files := map[string]string{
		"Dockerfile": "FROM sandshell-busybox\nWORKDIR /data\nRUN echo \"step " + word +
			"\"\nCOPY data/ /data/\n",
		"data/word": word,
	}
	var log bytes.Buffer
	name, err := Engine{}.BuildImage(t.Context(), Build{Dir: writeFiles(t, files), Log: &log})
	require.NoError(t, err)
	dockertest.RemoveImage(t, d, name)
	require.Contains(t, log.String(), "step "+word)
	expect(t, newBox(t, Config{Image: name, Network: "none"}), "pwd; cat word", 0, "/data\n"+word)

	other := writeFiles(t, files)
	require.NoError(t, os.Symlink("word", filepath.Join(other, "data/link")))
	log.Reset()
	same, err := Engine{}.BuildImage(t.Context(), Build{Dir: writeFiles(t, files), Log: &log})
	require.NoError(t, err)
	require.Equal(t, name, same)
	require.Empty(t, log.String(), "the same content was built again")
	linked, err := Engine{}.BuildImage(t.Context(), Build{Dir: other})
	require.NoError(t, err)
	dockertest.RemoveImage(t, d, linked)
	require.NotEqual(t, name, linked)

	pruned, err := Engine{}.Prune(t.Context(), linked)
	require.NoError(t, err)
	require.Equal(t, []string{linked}, pruned.Images)
	_, err = d.ImageInspect(t.Context(), name)
	require.NoError(t, err, "Prune removed an image that was not named")
}

func TestBuildImageFails(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	var failed *BuildError
	for dockerfile, wantError := range map[string]string{
		"FROM sandshell-busybox\nRUN echo " + rand.Text() +
			" && exit 3\n": "(non-zero code:|exit status) 3",
		"FROM sandshell-busybox\nNONSENSE\n":       "unknown instruction",
		"FROM sandshell-busybox\nCOPY missing /\n": "missing",
	} {
		dir := writeFiles(t, map[string]string{"Dockerfile": dockerfile})
		_, err := Engine{}.BuildImage(t.Context(), Build{Dir: dir})
		require.ErrorAs(t, err, &failed, dockerfile)
		require.ErrorContains(t, err, filepath.Join(dir, "Dockerfile"))
		require.Regexp(t, wantError, strings.ToLower(err.Error()))
	}
	_, err := Engine{}.BuildImage(t.Context(), Build{Dir: t.TempDir()})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.False(t, errors.As(err, &failed))
}
