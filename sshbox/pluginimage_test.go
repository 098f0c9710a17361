package sshbox

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
)

// pluginBase makes an image for which no image with plugins exists. It removes those that exist
// when the test ends.
func pluginBase(t *testing.T, changes ...string) string {
	t.Helper()
	marker := map[string]string{"etc/" + randomImageName(t): ""}
	name := commitImage(t, testImage, marker, changes...)
	t.Cleanup(func() {
		_, err := Engine{}.Prune(context.Background(), name)
		noError(t, err)
	})
	return name
}

// countedPlugin returns a plugin whose setup.sh has these lines. It counts the setups in n.
func countedPlugin(name string, n *atomic.Int64, lines ...string) plugin.Plugin {
	return plugin.Plugin{Name: name, Output: setupCounter{n}, Files: fstest.MapFS{
		"setup.sh": {Data: []byte("#!/bin/sh\nset -e\necho SETTING-UP\n" +
			strings.Join(lines, "\n") + "\n")},
	}}
}

// A setupCounter is the output of setups, which it counts. The shell writes its first line with one
// call, so no line is split between two Writes.
type setupCounter struct{ n *atomic.Int64 }

func (c setupCounter) Write(p []byte) (int, error) {
	c.n.Add(int64(bytes.Count(p, []byte("SETTING-UP"))))
	return len(p), nil
}

// TestPluginsAreSetUpOnce shows that boxes with the same plugins and image share one setup.
func TestPluginsAreSetUpOnce(t *testing.T) {
	base := pluginBase(t, `ENTRYPOINT ["/no/entrypoint"]`, `CMD ["x"]`, "ENV FROM_IMAGE=yes",
		"WORKDIR /usr/share", "LABEL mine=1")
	var n atomic.Int64
	p := countedPlugin("tool", &n, `printf '#!/bin/sh\necho "tool $TOOL"\n' >/usr/local/bin/tool`,
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
			t.Errorf("a Progress that panics: %v", err)
		}
	}
	noContainers(t)
	n.Store(0)
	var statuses []string
	c.Progress = func(p PullProgress) { statuses = append(statuses, p.Status) }
	box := newBox(t, c)
	if n.Load() != 1 || !slices.Equal(statuses, []string{"Setting up tool", "Keeping the image"}) {
		t.Errorf("%d setups, want 1; progress %q", n.Load(), statuses)
	}
	expect(t, box,
		`tool; echo $SECRET $FROM_IMAGE $PWD; ls -A ~/.sandshell/plugins | cat; ls -A /var/cache/sandshell`, 0,
		"tool sharp\na-secret yes /usr/share\ntool\ntool.env\ntool.installed\n")
	noError(t, box.Close())
	for _, change := range []func(*Config){
		func(c *Config) {},
		func(c *Config) {
			c.ReadOnlyRoot, c.CapDrop, c.Env, c.Dir = true, []string{"ALL"}, []string{"OTHER=1"},
				"/tmp"
			c.Mounts = []Mount{{Type: Tmpfs, Target: "/mnt"}}
			c.User = "root" // which is the image's user anyway
		},
	} {
		other := c
		change(&other)
		box := newBox(t, other)
		expect(t, box, "tool", 0, "tool sharp\n")
		noError(t, box.Close())
		if n.Load() != 1 {
			t.Fatalf("set up again for %+v", other)
		}
	}

	// The image has the configuration of its base, and nothing of the box in which it was made.
	d := testEngine(t)
	kept, err := d.ImageInspect(t.Context(), pluginImage(t, base))
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

// TestPluginsThatDiffer shows that plugins, or users, that differ make different images.
func TestPluginsThatDiffer(t *testing.T) {
	testenv.NeedsAll(t, "it makes three images: TestPluginsAreSetUpOnce makes one every day")
	base := pluginBase(t)
	var n atomic.Int64
	tool := countedPlugin("tool", &n, `echo "$TOOL" >/usr/local/tool`)
	c := Config{Image: base, Network: "none"}
	for _, env := range []string{"TOOL=sharp", "TOOL=blunt"} {
		tool.Env = []string{env}
		c.Plugins = []plugin.Plugin{tool}
		box := newBox(t, c)
		expect(t, box, "echo TOOL=$(cat /usr/local/tool)", 0, env+"\n")
		noError(t, box.Close())
	}
	c.User = "user"
	c.Plugins = []plugin.Plugin{countedPlugin("other", &n, "true")}
	box := newBox(t, c)
	expect(t, box, "ls -A ~/.sandshell/plugins | cat; id -un", 0, "other\nother.installed\nuser\n")
	noError(t, box.Close())
	if n.Load() != 3 {
		t.Errorf("%d setups, want 3", n.Load())
	}
	pruned, err := Engine{}.Prune(t.Context(), base)
	noError(t, err)
	if len(pruned.Images) != 3 || len(pruned.Volumes) != 1 && !dockertest.Podman(t, testEngine(t)) {
		t.Errorf("pruned %q", pruned)
	}
	noContainers(t)
}

// pluginImage returns the name of the only image with plugins that exists for a base.
func pluginImage(t *testing.T, base string) string {
	t.Helper()
	list, err := testEngine(t).ImageList(t.Context(),
		client.ImageListOptions{Filters: client.Filters{}.Add("label", "sandshell.image="+base)})
	noError(t, err)
	if len(list.Items) != 1 || len(list.Items[0].RepoTags) != 1 {
		t.Fatalf("want one image with plugins, got %+v", list.Items)
	}
	return list.Items[0].RepoTags[0]
}

// TestPluginsOfImagesWithoutAnything sets plugins up in an image of busybox, for a user without a
// name.
func TestPluginsOfImagesWithoutAnything(t *testing.T) {
	testenv.NeedsAll(t, "it sets plugins up in many containers: TestPluginsAreSetUpOnce does so "+
		"every day")
	needImage(t, bareImage)
	base := commitImage(t, bareImage, map[string]string{"marker": ""})
	t.Cleanup(func() { Engine{}.Prune(context.Background(), base) })
	var n atomic.Int64
	c := Config{Image: base, User: "12345:12345", Dir: "/tmp", Network: "none",
		Plugins: []plugin.Plugin{
			countedPlugin("tool", &n,
				`mkdir bin; printf '#!/bin/sh\necho tool\n' >bin/tool; chmod +x bin/tool; echo "$PWD/bin" >>"$SANDSHELL_PATH"`,
				`echo cached >"$SANDSHELL_CACHE/pip/file"`)}}
	for range 2 {
		box := newBox(t, c)
		expect(t, box, "tool; id -u", 0, "tool\n12345\n")
		noError(t, box.Close())
	}
	if n.Load() != 1 {
		t.Errorf("%d setups, want 1", n.Load())
	}
}

func TestPluginsRefused(t *testing.T) {
	testEngine(t)
	var n atomic.Int64
	requires := func(p plugin.Plugin, names ...string) plugin.Plugin {
		p.Requires = names
		return p
	}
	a := countedPlugin("a", &n, "true")
	for _, c := range []struct {
		config Config
		want   []string
	}{
		{Config{Plugins: []plugin.Plugin{requires(a, "a")}}, []string{"Config.Plugins", "circle"}},
		{Config{Plugins: []plugin.Plugin{requires(a, "b")}},
			[]string{"Config.Plugins", "a: Plugin.Requires: b is neither given"}},
		{Config{Plugins: []plugin.Plugin{a, a}},
			[]string{"Config.Plugins", "two plugins have this name"}},
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
