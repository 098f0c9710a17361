package sshbox

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// importImage makes an image of one file of random bytes, by docker import.
func importImage(t *testing.T, name string, size int64) string {
	t.Helper()
	d := testEngine(t)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	noError(t, w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: size}))
	io.CopyN(w, rand.Reader, size)
	noError(t, w.Close())
	r, err := d.ImageImport(t.Context(), client.ImageImportSource{Source: &b, SourceName: "-"},
		name, client.ImageImportOptions{})
	noError(t, err)
	io.Copy(io.Discard, r)
	r.Close()
	dockertest.RemoveImage(t, d, name)
	return name
}

// imageName returns an image's name that no other test uses.
func imageName(t *testing.T) string {
	return strings.ToLower(fmt.Sprintf("sandshell-%s-%d:latest",
		strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid()))
}

func TestImageMissing(t *testing.T) {
	wantRefused(t, Config{Image: "sandshell-no-such-image", Pull: PullNever},
		"sandshell-no-such-image", "not there", "docker pull")
	wantRefused(t, Config{Image: testImage, Platform: "linux/arm64/v9", Pull: PullNever},
		testImage, "another platform")
	// A server that is not a registry.
	l := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {})
	wantRefused(t, Config{Image: l.Addr().String() + "/image:tag"}, l.Addr().String()+"/image:tag",
		"pull image")
	wantRefused(t, Config{Image: "Not A Name", Pull: PullAlways}, "Not A Name")
}

// startRegistry starts a registry on loopback, where an engine needs no TLS. The registry and its
// storage go when the test ends.
func startRegistry(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("no docker-registry here: apt-get install docker-registry")
	}
	dir := t.TempDir()
	address := freeAddress(t)
	config := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: "+
		"{addr: %q}\nlog: {level: error}\n", dir, address)
	file := filepath.Join(t.TempDir(), "config.yml")
	noError(t, os.WriteFile(file, []byte(config), 0o600))
	log := &safeBuffer{}
	cmd := exec.Command(binary, "serve", file)
	cmd.Stdout, cmd.Stderr = log, log
	noError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("registry's log:\n%s", log)
		}
	})
	waitFor(t, "the registry to come up", func() bool {
		r, err := http.Get("http://" + address + "/v2/")
		if err == nil {
			r.Body.Close()
			http.DefaultClient.CloseIdleConnections()
		}
		return err == nil
	})
	return address
}

// TestPull pulls an image from a registry by each PullPolicy, and shows the progress.
func TestPull(t *testing.T) {
	d := testEngine(t)
	podman := dockertest.Podman(t, d) // which reports no sizes
	registry := startRegistry(t)
	name := importImage(t, registry+"/sandshell/test:1", 3<<20)
	push, err := d.ImagePush(t.Context(), name, client.ImagePushOptions{RegistryAuth: "e30="})
	noError(t, err)
	err = push.Wait(t.Context())
	if podman && err != nil && strings.Contains(err.Error(), "HTTP response to HTTPS client") {
		t.Skip("Podman speaks TLS to the registry of this test: its registries.conf has to say " +
			"that those on 127.0.0.1 are insecure")
	}
	noError(t, err)

	e, err := docker.Open(t.Context(), nil)
	noError(t, err)
	defer e.Close()
	forget := func() {
		t.Helper()
		_, err := d.ImageRemove(t.Context(), name, client.ImageRemoveOptions{})
		noError(t, err)
	}
	pull := func(policy PullPolicy) (progress []PullProgress) {
		t.Helper()
		_, err := e.Image(t.Context(), Config{Image: name, Pull: policy,
			Progress: func(p PullProgress) { progress = append(progress, p) }}.source())
		noError(t, err)
		return progress
	}
	forget()
	_, err = e.Image(t.Context(), Config{Image: name, Progress: func(PullProgress) {
		panic("oops")
	}}.source())
	if err == nil || !strings.Contains(err.Error(), "Config.Progress panicked: oops") {
		t.Errorf("got %v", err)
	}
	progress := pull(PullMissing)
	var done bool
	for _, p := range progress {
		if p.Image != name || p.Status == "" {
			t.Errorf("got %+v", p)
		}
		done = done || podman && p.Status == "Download complete" || p.Status == "Extracting" &&
			p.Done == p.Total && p.Total > 3<<20 && p.Layer != ""
	}
	if !done {
		t.Errorf("the progress shows no layer to its end: %+v", progress)
	}
	if progress := pull(PullMissing); len(progress) > 0 {
		t.Errorf("pulled again: %+v", progress)
	}
	if progress := pull(PullAlways); len(progress) == 0 {
		t.Error("not pulled again")
	}
	forget()
	wantRefused(t, Config{Image: name, Pull: PullNever}, name)
	missing := registry + "/sandshell/none:1"
	wantRefused(t, Config{Image: missing}, missing, "pull image", "registry")
	for _, none := range []string{missing, strings.TrimSuffix(name, ":1") + ":2"} {
		_, err := e.Image(t.Context(), Config{Image: none}.source())
		if !errdefs.IsNotFound(err) {
			t.Errorf("an image that the registry does not have, %s: %v", none, err)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := makeContainer(ctx, Config{Image: name}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
}
