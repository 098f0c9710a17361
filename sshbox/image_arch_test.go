package sshbox

import (
	"crypto/sha256"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// foreignImage makes an image for another architecture. It loads an archive as of docker save,
// because docker import would give the image the engine's own architecture.
func foreignImage(t *testing.T, arch string) string {
	t.Helper()
	d, name := testEngine(t), randomImageName(t)
	layer := tarFiles(t, map[string]string{"bin/sh": "not for this machine"})
	config := fmt.Sprintf(
		`{"architecture": %q, "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": ["sha256:%x"]}}`, arch, sha256.Sum256([]byte(layer)))
	r, err := d.ImageLoad(t.Context(), strings.NewReader(tarFiles(t, map[string]string{
		"layer.tar": layer, "config.json": config,
		"manifest.json": fmt.Sprintf(
			`[{"Config": "config.json", "RepoTags": [%q], "Layers": ["layer.tar"]}]`, name),
	})))
	noError(t, err)
	io.Copy(io.Discard, r)
	r.Close()
	dockertest.RemoveImage(t, d, name)
	return name
}

// TestImageOfAnotherArchitecture shows that New names the architecture that does not fit.
func TestImageOfAnotherArchitecture(t *testing.T) {
	testenv.NeedsAll(t, "it makes images for other architectures")
	arch := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	name := foreignImage(t, arch)
	for _, c := range []Config{{}, {Keep: true}, {CapAdd: []string{"SYS_ADMIN"}},
		{Platform: "linux/" + arch}} {
		c.Image, c.Network, c.Pull = name, "none", PullNever
		began := time.Now()
		box, err := New(t.Context(), c)
		if err == nil {
			box.Close()
			t.Skip("this machine runs programs for " + arch +
				" (binfmt_misc): run this test on one that does not")
		}
		t.Log(time.Since(began), err)
		for _, want := range []string{name, "linux/" + arch, "exec format error", "Platform"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %q", want, err)
			}
		}
		noContainers(t)
	}
	_, err := New(t.Context(), Config{Image: name, Platform: "linux/" + runtime.GOARCH,
		Pull: PullNever})
	if err == nil || !strings.Contains(err.Error(), "another platform") ||
		!strings.Contains(err.Error(), arch) {
		t.Errorf("another platform: %v", err)
	}
	name = foreignImage(t, "s390x")
	if _, err := New(t.Context(), Config{Image: name, Pull: PullNever}); err == nil ||
		!strings.Contains(err.Error(), "s390x") ||
		!strings.Contains(err.Error(), "choose an image for linux/amd64") {
		t.Errorf("s390x: %v", err)
	}
	noContainers(t)
}
