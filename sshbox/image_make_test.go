package sshbox

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// randomImageName returns an image's name that is new each time.
func randomImageName(t *testing.T) string {
	return strings.TrimSuffix(imageName(t), ":latest") + "-" + strings.ToLower(rand.Text()[:8]) +
		":latest"
}

// commitImage makes an image that adds files to another, and applies changes, which are lines of a
// Dockerfile. It removes the image when the test ends.
func commitImage(t *testing.T, image string, files map[string]string, changes ...string) string {
	t.Helper()
	d := needImage(t, image)
	created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: image}})
	noError(t, err)
	defer func() {
		_, err := d.ContainerRemove(t.Context(), created.ID,
			client.ContainerRemoveOptions{Force: true})
		noError(t, err)
	}()
	_, err = d.CopyToContainer(t.Context(), created.ID,
		client.CopyToContainerOptions{DestinationPath: "/",
			Content: strings.NewReader(tarFiles(t, files))})
	noError(t, err)

	name := randomImageName(t)
	// Podman needs a Config.
	_, err = d.ContainerCommit(t.Context(), created.ID,
		client.ContainerCommitOptions{Reference: name, Changes: changes,
			Config: &container.Config{}})
	noError(t, err)
	dockertest.RemoveImage(t, d, name)
	return name
}

// tarFiles returns a tar archive of files.
func tarFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		noError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755,
			Size: int64(len(files[name]))}))
		_, err := io.WriteString(w, files[name])
		noError(t, err)
	}
	noError(t, w.Close())
	return b.String()
}
