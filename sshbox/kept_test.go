package sshbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
)

// keptBase makes an image on which nothing is kept yet, and sees to it that nothing will be at the
// test's end.
func keptBase(t *testing.T, changes ...string) string {
	t.Helper()
	name := changed(t, testImage, map[string]string{"etc/" + anImageName(t): ""}, changes...)
	t.Cleanup(func() {
		_, err := Engine{}.Prune(context.Background(), name)
		noError(t, err)
	})
	return name
}

// counted is a plugin whose setup.sh has these lines. It counts the setups.
func counted(name string, n *atomic.Int64, lines ...string) plugin.Plugin {
	return plugin.Plugin{Name: name, Output: countSetups{n}, Files: fstest.MapFS{
		"setup.sh": {Data: []byte("#!/bin/sh\nset -e\necho SETTING-UP\n" +
			strings.Join(lines, "\n") + "\n")},
	}}
}

// countSetups counts what is written at once: the shell writes the line so, and then sleeps or not.
type countSetups struct{ n *atomic.Int64 }

func (c countSetups) Write(p []byte) (int, error) {
	c.n.Add(int64(bytes.Count(p, []byte("SETTING-UP"))))
	return len(p), nil
}

func TestPluginsAreSetUpOnce(t *testing.T) {
	base := keptBase(t, `ENTRYPOINT ["/no/entrypoint"]`, `CMD ["x"]`, "ENV FROM_IMAGE=yes",
		"WORKDIR /usr/share", "LABEL mine=1")
	var n atomic.Int64
	p := counted("tool", &n, `printf '#!/bin/sh\necho "tool $TOOL"\n' >/usr/local/bin/tool`,
		"chmod +x /usr/local/bin/tool",
		`echo TOOL=sharp >>"$SANDSHELL_ENV"`, `[ -z "$SECRET" ]`,
		`[ "$https_proxy" = "http://127.0.0.1:1" ]`, `[ -d "$SANDSHELL_CACHE" ]`, "[ -w /opt ]")
	c := Config{Image: base, Network: "none", Plugins: []plugin.Plugin{p},
		Env: []string{"SECRET=a-secret", "https_proxy=http://127.0.0.1:1"}}
	for _, at := range []string{"Setting up tool", "Keeping the image"} {
		c.Progress = func(p PullProgress) {
			if p.Status == at {
				panic("oops")
			}
		}
		if _, err := New(t.Context(), c); err == nil ||
			!strings.Contains(err.Error(), "Config.Progress panicked: oops") {
			t.Errorf("got %v", err)
		}
	}
	noContainers(t)
	n.Store(0)
	var statuses []string
	c.Progress = func(p PullProgress) { statuses = append(statuses, p.Status) }
	box := newBox(t, c)
	if n.Load() != 1 || !slices.Equal(statuses, []string{"Setting up tool", "Keeping the image"}) {
		t.Errorf("%d setups, progress %q", n.Load(), statuses)
	}
	does(t, box,
		`tool; echo $SECRET $FROM_IMAGE $PWD; ls -A ~/.sandshell/plugins | cat; ls -A /var/cache/sandshell`, 0,
		"tool sharp\na-secret yes /usr/share\ntool\ntool.env\ntool.installed\n")
	noError(t, box.Close())
	for _, change := range []func(*Config){
		func(c *Config) {},
		func(c *Config) {
			c.ReadOnlyRoot, c.CapDrop, c.Env, c.Dir = true, []string{"ALL"}, []string{"OTHER=1"},
				"/tmp"
			c.Mounts = []Mount{{Type: Tmpfs, Target: "/mnt"}}
			c.User = "root" // as it is already
		},
	} {
		other := c
		change(&other)
		box := newBox(t, other)
		does(t, box, "tool", 0, "tool sharp\n")
		noError(t, box.Close())
		if n.Load() != 1 {
			t.Fatalf("set up again for %+v", other)
		}
	}

	// The image is like its base, and tells nothing of the box in which it was made.
	d := testEngine(t)
	kept, err := d.ImageInspect(t.Context(), imageOfPlugins(t, base))
	noError(t, err)
	of, err := d.ImageInspect(t.Context(), base)
	noError(t, err)
	if k, b := kept.Config, of.Config; !slices.Equal(k.Entrypoint, b.Entrypoint) ||
		!slices.Equal(k.Cmd, b.Cmd) || !slices.Equal(slices.Sorted(slices.Values(k.Env)),
		slices.Sorted(slices.Values(b.Env))) ||
		k.User != b.User || k.WorkingDir != b.WorkingDir || k.Labels["sandshell.box"] != "" ||
		k.Labels["mine"] != "1" {
		t.Errorf("%+v\nof %+v", k, b)
	}

	pruned, err := Engine{}.Prune(t.Context(), base)
	noError(t, err)
	if len(pruned.Images) != 1 || len(pruned.Volumes) != 1 && !dockertest.Podman(t, d) {
		t.Errorf("pruned %q", pruned)
	}
	noContainers(t)
}

// What an image depends on makes another.
func TestPluginsThatDiffer(t *testing.T) {
	testenv.NeedsAll(t, "it makes three images: TestPluginsAreSetUpOnce makes one every day")
	base := keptBase(t)
	var n atomic.Int64
	tool := counted("tool", &n, `echo "$TOOL" >/usr/local/tool`)
	c := Config{Image: base, Network: "none"}
	for _, env := range []string{"TOOL=sharp", "TOOL=blunt"} {
		tool.Env = []string{env}
		c.Plugins = []plugin.Plugin{tool}
		box := newBox(t, c)
		does(t, box, "echo TOOL=$(cat /usr/local/tool)", 0, env+"\n")
		noError(t, box.Close())
	}
	c.User = "user"
	c.Plugins = []plugin.Plugin{counted("other", &n, "true")}
	box := newBox(t, c)
	does(t, box, "ls -A ~/.sandshell/plugins | cat; id -un", 0, "other\nother.installed\nuser\n")
	noError(t, box.Close())
	if n.Load() != 3 {
		t.Errorf("%d setups", n.Load())
	}
	pruned, err := Engine{}.Prune(t.Context(), base)
	noError(t, err)
	if len(pruned.Images) != 3 || len(pruned.Volumes) != 1 && !dockertest.Podman(t, testEngine(t)) {
		t.Errorf("pruned %q", pruned)
	}
	noContainers(t)
}

// imageOfPlugins is the name of the only image with plugins that is kept for a base.
func imageOfPlugins(t *testing.T, base string) string {
	t.Helper()
	list, err := testEngine(t).ImageList(t.Context(),
		client.ImageListOptions{Filters: client.Filters{}.Add("label", "sandshell.image="+base)})
	noError(t, err)
	if len(list.Items) != 1 || len(list.Items[0].RepoTags) != 1 {
		t.Fatalf("kept: %+v", list.Items)
	}
	return list.Items[0].RepoTags[0]
}

func TestPluginsOfImagesWithoutAnything(t *testing.T) {
	testenv.NeedsAll(t, "it sets plugins up in many containers: TestPluginsAreSetUpOnce does so "+
		"every day")
	imageOf(t, bareImage)
	base := changed(t, bareImage, map[string]string{"marker": ""})
	t.Cleanup(func() { Engine{}.Prune(context.Background(), base) })
	var n atomic.Int64
	c := Config{Image: base, User: "12345:12345", Dir: "/tmp", Network: "none",
		Plugins: []plugin.Plugin{
			counted("tool", &n,
				`mkdir bin; printf '#!/bin/sh\necho tool\n' >bin/tool; chmod +x bin/tool; echo "$PWD/bin" >>"$SANDSHELL_PATH"`,
				`echo cached >"$SANDSHELL_CACHE/pip/file"`)}}
	for range 2 {
		box := newBox(t, c)
		does(t, box, "tool; id -u", 0, "tool\n12345\n")
		noError(t, box.Close())
	}
	if n.Load() != 1 {
		t.Errorf("%d setups", n.Load())
	}
}

func TestPluginsConcurrently(t *testing.T) {
	testenv.NeedsAll(t, "it sets plugins up in many containers: TestPluginsAreSetUpOnce does so "+
		"every day")
	base := keptBase(t)
	var n atomic.Int64
	c := Config{Image: base, Network: "none", Plugins: []plugin.Plugin{
		counted("tool", &n, "sleep 1", "touch /tool")}}
	var all sync.WaitGroup
	boxes := 5
	if testenv.Full() {
		boxes = 12
	}
	for range boxes {
		all.Go(func() {
			box := newBox(t, c)
			does(t, box, "ls /tool", 0, "/tool\n")
			noError(t, box.Close())
		})
	}
	all.Wait()
	if n.Load() != 1 {
		t.Errorf("%d setups", n.Load())
	}

	// One that fails fails for all who wait, once.
	n.Store(0)
	c.Plugins = []plugin.Plugin{counted("tool", &n, "sleep 3", "echo no luck", "exit 4")}
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
		t.Errorf("%d setups that fail", n.Load())
	}
	noContainers(t)
}

func TestPluginsCancelled(t *testing.T) {
	testenv.NeedsAll(t, "it sets plugins up in many containers: TestPluginsAreSetUpOnce does so "+
		"every day")
	base := keptBase(t)
	var n atomic.Int64
	began := make(chan struct{})
	p := counted("tool", &n, "sleep 2", "touch /tool")
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
			t.Errorf("cancelled: %v", err)
		}
	})
	<-began
	all.Go(func() { // takes over
		box := newBox(t, c)
		does(t, box, "ls /tool", 0, "/tool\n")
		noError(t, box.Close())
	})
	cancel()
	all.Wait()
	if n.Load() != 2 {
		t.Errorf("%d setups", n.Load())
	}
	noContainers(t)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestPluginsOfAnotherProgram(t *testing.T) {
	testenv.NeedsAll(t, "it sets plugins up in many containers: TestPluginsAreSetUpOnce does so "+
		"every day")
	base := keptBase(t)
	var n atomic.Int64
	c, err := Config{Image: base, Network: "none", Plugins: []plugin.Plugin{
		counted("tool", &n, "touch /tool")}}.withDefaults()
	noError(t, err)
	e, err := docker.Open(t.Context(), nil)
	noError(t, err)
	defer e.Close()
	image, err := e.Image(t.Context(), c.source())
	noError(t, err)
	key, err := keyOf(image, c)
	noError(t, err)
	others := newBox(t, Config{Image: base, Network: "none", Name: "sandshell-setup-" + key})
	waits := make(chan struct{})
	c.Progress = func(p PullProgress) {
		if strings.HasPrefix(p.Status, "Another") {
			close(waits)
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		box := newBox(t, c)
		does(t, box, "ls /tool", 0, "/tool\n")
		noError(t, box.Close())
	})
	<-waits
	if n.Load() != 0 {
		t.Error("set up beside another")
	}
	noError(t, others.Close()) // which has given up
	all.Wait()
}

// Several programs that want the same at once set it up once.
func TestPluginsOfManyPrograms(t *testing.T) {
	testenv.NeedsFull(t, "many boxes of one program, and another program, want the same image in "+
		"make test-all")
	const variable = "SANDSHELL_TEST_BASE"
	var n atomic.Int64
	c := Config{Image: os.Getenv(variable), Network: "none",
		Plugins: []plugin.Plugin{counted("tool", &n, "sleep 2", "touch /tool")}}
	if c.Image != "" { // one of them
		box := newBox(t, c)
		does(t, box, "ls /tool", 0, "/tool\n")
		noError(t, box.Close())
		t.Logf("SETUPS: %d", n.Load())
		return
	}
	base := keptBase(t)
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
	if text := out.take(); strings.Count(text, "SETUPS: 1") != 1 ||
		strings.Count(text, "SETUPS: 0") != 3 {
		t.Error(text)
	}
	noContainers(t)
}

func TestPluginsRefused(t *testing.T) {
	testEngine(t)
	var n atomic.Int64
	requires := func(p plugin.Plugin, names ...string) plugin.Plugin {
		p.Requires = names
		return p
	}
	a := counted("a", &n, "true")
	for _, c := range []struct {
		config Config
		want   []string
	}{
		{Config{Plugins: []plugin.Plugin{requires(a, "a")}}, []string{"Config.Plugins", "circle"}},
		{Config{Plugins: []plugin.Plugin{requires(a, "b")}},
			[]string{"Config.Plugins", "a requires b"}},
		{Config{Plugins: []plugin.Plugin{a, a}}, []string{"Config.Plugins", "two of that name"}},
		{Config{Plugins: []plugin.Plugin{{}}}, []string{"Config.Plugins", "a name has letters"}},
		{Config{Plugins: []plugin.Plugin{{Name: "a", Files: fstest.MapFS{}}}},
			[]string{"Config.Plugins", "setup.sh"}},
		{Config{Plugins: []plugin.Plugin{a}, PackageCache: "/tmp/x"},
			[]string{"Config.PackageCache", "/tmp/x", "volume's name"}},
		{Config{Plugins: []plugin.Plugin{a}, PluginNetwork: "no-such-network"},
			[]string{testImage, "no-such-network", "docker network ls"}},
		{Config{Plugins: []plugin.Plugin{a}, User: "nobody9"},
			[]string{testImage, "nobody9", "Config.User"}},
	} {
		c.config.Image, c.config.Network, c.config.Pull = testImage, "none", PullNever
		_, err := New(t.Context(), c.config)
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("no %q in %v", w, err)
			}
		}
	}
	noContainers(t)
}

func TestPruneAll(t *testing.T) {
	testenv.NeedsAll(t, "it removes what other packages' tests keep on the engine, and runs alone")
	d := testEngine(t)
	if os.Getenv("SANDSHELL_REQUIRE_DOCKER") != "1" {
		t.Skip("it would remove what this machine keeps for its boxes: " +
			"SANDSHELL_REQUIRE_DOCKER=1 allows it")
	}
	base := keptBase(t)
	var n atomic.Int64
	box := newBox(t, Config{Image: base, Network: "none",
		Plugins: []plugin.Plugin{counted("tool", &n, "true")}})
	old := "sandshell-boxd-of-an-older-version"
	_, err := d.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: old,
		Labels: map[string]string{"sandshell.boxd": "123"}})
	noError(t, err)
	kept := imageOfPlugins(t, base)
	pruned, err := Engine{}.Prune(t.Context())
	noError(t, err)
	if slices.Contains(pruned.Images, kept) || !slices.Contains(pruned.Volumes, old) {
		t.Errorf("while a box has the image: %q", pruned)
	}
	does(t, box, "echo lives", 0, "lives\n")
	noError(t, box.Close())
	pruned, err = Engine{}.Prune(t.Context())
	noError(t, err)
	if !slices.Equal(pruned.Images, []string{kept}) || len(pruned.Volumes) != 0 {
		t.Errorf("afterwards: %q", pruned)
	}
}
