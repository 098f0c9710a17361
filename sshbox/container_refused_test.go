package sshbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// refused expects no container and an error that says all of want.
func refused(t *testing.T, c Config, want ...string) error {
	t.Helper()
	testEngine(t)
	h, err := makeContainer(t.Context(), c)
	if err == nil {
		h.Close()
		t.Fatal("made a container")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no %q in %q", w, err)
		}
	}
	noContainers(t)
	return err
}

func TestContainerMountsRefused(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if !dockertest.Podman(t, testEngine(t)) { // which makes the directory
		if err := refused(t, Config{Image: testImage, Mounts: []Mount{
			{Source: missing, Target: "/x"}}}, missing, "does not exist"); !errors.Is(err,
			fs.ErrNotExist) {
			t.Errorf("not fs.ErrNotExist: %v", err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	noError(t, os.Symlink("/var/run", link))
	for _, m := range []Mount{
		{Source: "/var/run/docker.sock", Target: "/var/run/docker.sock"},
		{Source: "/run/../run/docker.sock", Target: "/s"},
		{Source: "/var/run", Target: "/s"},
		{Source: "/", Target: "/s", ReadOnly: true},
		{Source: link, Target: "/s"},
	} {
		refused(t, Config{Image: testImage, Mounts: []Mount{m}}, m.Source, "socket", "root")
	}
	for _, m := range []Mount{
		{Source: "/tmp", Target: "relative"}, {Source: "/tmp", Target: "/"},
		{Source: "/tmp", Target: "/.sandshell/x"},
		{Type: "strange", Target: "/x"}, {Type: Tmpfs, Source: "x", Target: "/x"},
		{Source: "", Target: "/x"}, {Source: "relative", Target: "/x"},
	} {
		refused(t, Config{Image: testImage, Mounts: []Mount{m}}, m.Target)
	}
}

func TestContainerName(t *testing.T) {
	name := fmt.Sprintf("sandshell-test-name-%d", os.Getpid())
	h := containerOf(t, func(c *Config) { c.Name = name })
	if _, err := makeContainer(t.Context(), Config{Image: testImage, Name: name}); err == nil ||
		!strings.Contains(err.Error(), "taken") || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
	// The other one's failure has left it alone.
	if r := run(t, h, sh("echo alive")); r.Stdout != "alive\n" {
		t.Errorf("got %+v", r)
	}
	noError(t, h.Close())
	refused(t, Config{Image: testImage, Name: "not a name!"}, "not a name!")
}

func TestContainerSettingsRefused(t *testing.T) {
	refused(t, Config{Pull: PullNever}, DefaultImage)
	refused(t, Config{Linger: time.Millisecond}, "Config.Linger")
	refused(t, Config{Env: []string{"NOTHING"}}, "Config.Env", `"NOTHING"`, "NAME=value")
	refused(t, Config{Dir: "relative"}, "Config.Dir", `"relative"`)
	refused(t, Config{Image: testImage, Pull: "sometimes"}, "sometimes")
	refused(t, Config{Image: testImage, Runtime: "no-such-runtime"}, "no-such-runtime")
	refused(t, Config{Image: testImage, Memory: 1 << 20}, "memory")
	refused(t, Config{Image: testImage, Platform: "nonsense"}, "nonsense")
	refused(t, Config{Image: testImage, CapAdd: []string{"NO_SUCH"}}, "NO_SUCH")
}

func TestNoEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	_, err := makeContainer(t.Context(), Config{Image: testImage})
	for _, want := range []string{"unix:///nonexistent/docker.sock", "DOCKER_HOST", "localbox"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	t.Setenv("DOCKER_HOST", "ssh://user@127.0.0.1:1") // TestContextSSH has one that answers
	if _, err := makeContainer(t.Context(), Config{Image: testImage}); err == nil ||
		!strings.Contains(err.Error(), "no Docker engine answers at ssh://user@127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
	t.Setenv("DOCKER_HOST", "nonsense")
	if _, err := makeContainer(t.Context(), Config{Image: testImage}); err == nil ||
		!strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
}
