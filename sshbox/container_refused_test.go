package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// wantRefused expects an error that contains all of want, and no container.
func wantRefused(t *testing.T, c Config, want ...string) error {
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
	if !dockertest.Podman(t, testEngine(t)) { // Podman makes the directory
		if err := wantRefused(t, Config{Image: testImage, Mounts: []Mount{
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
		wantRefused(t, Config{Image: testImage, Mounts: []Mount{m}}, m.Source, "socket", "root")
	}
	for _, c := range []struct {
		mount Mount
		field string
	}{
		{Mount{Source: "/tmp", Target: "relative"}, "Target"},
		{Mount{Source: "/tmp", Target: "/"}, "Target"},
		{Mount{Source: "/tmp", Target: "/.sandshell/x"}, "Target"},
		{Mount{Source: "/tmp", Target: "/first/"}, "Target"},
		{Mount{Type: "strange", Target: "/x"}, "Type"},
		{Mount{Type: Tmpfs, Source: "x", Target: "/x"}, "Source"},
		{Mount{Type: Tmpfs, Target: "/x", Size: -1}, "Size"},
		{Mount{Source: "", Target: "/x"}, "Source"},
		{Mount{Source: "relative", Target: "/x"}, "Source"},
	} {
		wantRefused(t, Config{Image: testImage, Mounts: []Mount{{Source: "/", Target: "/first"},
			c.mount}}, "Config.Mounts[1]."+c.field+": ")
	}
}

func TestContainerName(t *testing.T) {
	name := fmt.Sprintf("sandshell-test-name-%d", os.Getpid())
	h := testContainer(t, func(c *Config) { c.Name = name })
	if _, err := makeContainer(t.Context(), Config{Image: testImage, Name: name}); err == nil ||
		!strings.Contains(err.Error(), "taken") || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
	// The container that has the name is still running.
	if r := run(t, h, sh("echo alive")); r.Stdout != "alive\n" {
		t.Errorf("got %+v", r)
	}
	noError(t, h.Close())
	wantRefused(t, Config{Image: testImage, Name: "not a name!"}, "not a name!")
}

func TestContainerSettingsRefused(t *testing.T) {
	wantRefused(t, Config{Pull: PullNever}, DefaultImage)
	wantRefused(t, Config{Linger: time.Millisecond}, "Config.Linger")
	wantRefused(t, Config{Env: []string{"NOTHING"}}, "Config.Env", `"NOTHING"`, "NAME=value")
	wantRefused(t, Config{Dir: "relative"}, "Config.Dir", `"relative"`)
	wantRefused(t, Config{Image: testImage, Pull: "sometimes"}, "sometimes")
	wantRefused(t, Config{Image: testImage, Runtime: "no-such-runtime"},
		"Config.Runtime: ", "no-such-runtime")
	wantRefused(t, Config{Image: testImage, Memory: 512}, "Config.Memory: 512 bytes are too few")
	wantRefused(t, Config{Image: testImage, Platform: "nonsense"}, "Config.Platform", "nonsense")
	wantRefused(t, Config{Grace: -1}, "Config.Grace: -1ns is negative: 0 stands for 1s")
	wantRefused(t, Config{Memory: -1}, "Config.Memory: -1 is negative: 0 stands for no limit")
	wantRefused(t, Config{Image: testImage, CapAdd: []string{"NO_SUCH"}}, "Config.CapAdd",
		"NO_SUCH")
	wantRefused(t, Config{Image: testImage, CPUs: 1000}, "Config.CPUs: ")
	wantRefused(t, Config{Image: testImage, GPUs: -2}, "Config.GPUs: -2 is negative")
	wantRefused(t, Config{Image: testImage, Network: "open"}, `Config.Network: "open" is a word`)
	wantRefused(t, Config{Image: testImage, PluginNetwork: "open"}, "leave it out for the engine's")
	wantRefused(t, Config{ExtraHosts: []string{"a:::1", "b:host-gateway", "foo"}},
		`Config.ExtraHosts[2]: "foo": write name:address`)
	wantRefused(t, Config{Image: testImage, Network: "non"}, "Config.Network: ")
	wantRefused(t, Config{Platform: "linux/arm65"},
		`Config.Platform: "linux/arm65": use linux/amd64 or linux/arm64`)
	wantRefused(t, Config{Image: "Sand Shell"}, `Config.Image: "Sand Shell" is no image's name`)
	wantRefused(t, Config{Shell: []string{""}}, "Config.Shell: its first element is empty")
	wantRefused(t, Config{Env: []string{"A=1", "=x"}}, "Config.Env[1]: it has no name")
}

// TestNewRefused: the errors of New and of others name the field, and what to do.
func TestNewRefused(t *testing.T) {
	testEngine(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	newBox := func(ctx context.Context, c Config) error {
		c.Image = testImage
		_, err := New(ctx, c)
		return err
	}
	_, attached := Engine{}.Attach(t.Context(), "")
	_, built := Engine{}.BuildImage(t.Context(), Build{})
	for _, c := range []struct {
		err  error
		is   error
		says string
	}{
		{newBox(canceled, Config{}), context.Canceled, "sshbox: context canceled"},
		{newBox(nil, Config{}), nil, "sshbox: the context is nil"},
		{newBox(t.Context(), Config{Shell: []string{"zsh"}}), exec.ErrNotFound,
			"zsh: no such program: install it in the image, or leave Shell out"},
		{newBox(t.Context(), Config{Dir: "/nonexistent"}), fs.ErrNotExist, "Config.Dir: open " +
			"main: chdir /nonexistent: no such file or directory: give a directory that is in"},
		{attached, nil, "the id is empty: List has them"},
		{built, nil, "sshbox: Build.Dir: it is empty"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("no %q in %v", c.says, c.err)
		} else if strings.Contains(c.err.Error(), "no Docker engine") {
			t.Errorf("got %v", c.err)
		}
		if c.is != nil && !errors.Is(c.err, c.is) {
			t.Errorf("not %v: %v", c.is, c.err)
		}
	}
	noContainers(t)
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
