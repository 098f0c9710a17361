package sshbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
)

// TestPluginsConcurrently makes boxes at the same time. They share one setup.
func TestPluginsConcurrently(t *testing.T) {
	testenv.NeedsAll(t, "it sets plugins up in many containers: TestPluginsAreSetUpOnce does so "+
		"every day")
	base := pluginBase(t)
	var n atomic.Int64
	c := Config{Image: base, Network: "none", Plugins: []plugin.Plugin{
		countedPlugin("tool", &n, "sleep 1", "touch /tool")}}
	var all sync.WaitGroup
	boxes := 5
	if testenv.Full() {
		boxes = 12
	}
	for range boxes {
		all.Go(func() {
			box := newBox(t, c)
			expect(t, box, "ls /tool", 0, "/tool\n")
			noError(t, box.Close())
		})
	}
	all.Wait()
	if n.Load() != 1 {
		t.Errorf("%d setups, want 1", n.Load())
	}

	// A setup that fails runs once, and fails for all that wait for it.
	n.Store(0)
	c.Plugins = []plugin.Plugin{countedPlugin("tool", &n, "sleep 3", "echo no luck", "exit 4")}
	for range 5 {
		all.Go(func() {
			_, err := New(t.Context(), c)
			var failed *plugin.Error
			if !errors.As(err, &failed) || failed.ExitCode != 4 ||
				!strings.HasPrefix(err.Error(), "sshbox: failed to install tool on DockerSSHBox: "+
					"SETTING-UP\nno luck") {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if n.Load() != 1 {
		t.Errorf("%d failed setups, want 1", n.Load())
	}
	noContainers(t)
}

// TestPluginsCancelled cancels a setup for which another New waits. That New sets up itself.
func TestPluginsCancelled(t *testing.T) {
	testenv.NeedsAll(t, "it sets plugins up in many containers: TestPluginsAreSetUpOnce does so "+
		"every day")
	base := pluginBase(t)
	var n atomic.Int64
	began := make(chan struct{})
	p := countedPlugin("tool", &n, "sleep 2", "touch /tool")
	p.Output = io.MultiWriter(p.Output, writerFunc(func(b []byte) (int, error) {
		if bytes.Contains(b, []byte("SETTING-UP")) && n.Load() == 1 {
			close(began)
		}
		return len(b), nil
	}))
	c := Config{Image: base, Network: "none", Plugins: []plugin.Plugin{p}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := New(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("New after cancel: %v", err)
		}
	})
	<-began
	all.Go(func() { // takes over the setup
		box := newBox(t, c)
		expect(t, box, "ls /tool", 0, "/tool\n")
		noError(t, box.Close())
	})
	cancel()
	all.Wait()
	if n.Load() != 2 {
		t.Errorf("%d setups, want 2", n.Load())
	}
	noContainers(t)
}

// A writerFunc is a function that is a Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestPluginsOfAnotherProgram waits while another program sets the plugins up, until it gives up.
func TestPluginsOfAnotherProgram(t *testing.T) {
	testenv.NeedsAll(t, "it sets plugins up in many containers: TestPluginsAreSetUpOnce does so "+
		"every day")
	base := pluginBase(t)
	var n atomic.Int64
	c, err := Config{Image: base, Network: "none", Plugins: []plugin.Plugin{
		countedPlugin("tool", &n, "touch /tool")}}.withDefaults()
	noError(t, err)
	e, err := docker.Open(t.Context(), nil)
	noError(t, err)
	defer e.Close()
	image, err := e.Image(t.Context(), c.source())
	noError(t, err)
	key, err := keyOf(image, c)
	noError(t, err)
	others := newBox(t, Config{Image: base, Network: "none", Name: "sandshell-setup-" + key})
	waiting := make(chan struct{})
	c.Progress = func(p PullProgress) {
		if strings.HasPrefix(p.Status, "Another") {
			close(waiting)
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		box := newBox(t, c)
		expect(t, box, "ls /tool", 0, "/tool\n")
		noError(t, box.Close())
	})
	<-waiting
	if n.Load() != 0 {
		t.Error("set up while another program does")
	}
	noError(t, others.Close()) // the other program gives up
	all.Wait()
}

// TestPluginsOfManyPrograms shows that several programs that want the same image at the same time
// make it once.
func TestPluginsOfManyPrograms(t *testing.T) {
	testenv.NeedsFull(t, "many boxes of one program, and another program, want the same image in "+
		"make test-all")
	const variable = "SANDSHELL_TEST_BASE"
	var n atomic.Int64
	c := Config{Image: os.Getenv(variable), Network: "none",
		Plugins: []plugin.Plugin{countedPlugin("tool", &n, "sleep 2", "touch /tool")}}
	if c.Image != "" { // this is one of the programs
		box := newBox(t, c)
		expect(t, box, "ls /tool", 0, "/tool\n")
		noError(t, box.Close())
		t.Logf("SETUPS: %d", n.Load())
		return
	}
	base := pluginBase(t)
	self, err := os.Executable()
	noError(t, err)
	var out safeBuffer
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestPluginsOfManyPrograms$",
				"-test.v", "-test.timeout=5m")
			cmd.Env = append(os.Environ(), variable+"="+base)
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			out.Write(text)
		})
	}
	all.Wait()
	if text := out.drain(); strings.Count(text, "SETUPS: 1") != 1 ||
		strings.Count(text, "SETUPS: 0") != 3 {
		t.Error(text)
	}
	noContainers(t)
}
