package sshbox

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
)

// TestPackageCache shows that the setup of a changed plugin downloads no package again, and that
// setups at the same time do not lock each other out of apt-get.
func TestPackageCache(t *testing.T) {
	testenv.NeedsAll(t, "it installs packages, twice")
	base := pluginBase(t)
	setup := func(of string) plugin.Plugin {
		return plugin.Plugin{Name: of, Timeout: 5 * time.Minute,
			Files: fstest.MapFS{"setup.sh": {Data: []byte(
				"#!/bin/sh\nset -e\napt-get update\napt-get install -y --no-install-recommends " +
					of +
					"\n")}}}
	}
	var out safeBuffer
	c := Config{Image: base}
	for i, version := range []string{"1", "2"} {
		out.drain()
		c.Plugins = nil
		for _, of := range []string{"hello", "tree", "pv"} {
			p := setup(of)
			p.Env, p.Output = []string{"VERSION=" + version}, &out
			c.Plugins = append(c.Plugins, p)
		}
		box := newBox(t, c)
		expect(t, box, "hello; command -v tree pv; ls -A /var/lib/apt/lists "+
			"/var/cache/apt/archives | grep -v -e lock -e partial", 0,
			"Hello, world!\n/usr/bin/tree\n/usr/bin/pv\n/var/cache/apt/archives:\n\n"+
				"/var/lib/apt/lists:\n")
		noError(t, box.Close())
		text := out.drain()
		if got := strings.Count(text, "Need to get 0 B/"); got != 3*i ||
			!strings.Contains(text, "Need to get ") {
			t.Errorf("version %s: %d of 3 setups found all packages in the cache, want %d:\n%s",
				version, got, 3*i, text)
		}
		if strings.Contains(text, "unsandboxed") || strings.Contains(text, "W:") ||
			strings.Contains(text, "E:") {
			t.Errorf("apt-get printed warnings or errors:\n%s", text)
		}
	}
}

// TestPackageCacheOfPip shows that pip does not download again what it has installed before.
func TestPackageCacheOfPip(t *testing.T) {
	testenv.NeedsFull(t, "it makes virtual environments with pip, twice: make test-all has "+
		"TestPackageCache with apt-get, and pytool's TestRequirements runs pip every day")
	c := Config{Image: pluginBase(t), Network: "none"}
	for i, version := range []string{"1", "2"} {
		var out safeBuffer
		c.Plugins = []plugin.Plugin{{Name: "teapot", Files: os.DirFS("testdata/pip"),
			Env: []string{"VERSION=" + version}, Output: &out}}
		box := newBox(t, c)
		expect(t, box, "teapot; ls -A ~/.cache 2>/dev/null", 2, "a teapot\n")
		noError(t, box.Close())
		if text := out.drain(); strings.Count(text, "GET /simple/teapot/") != 1 ||
			strings.Count(text, "GET /teapot-1.0-py3-none-any.whl") != 1-i {
			t.Errorf("version %s: %s", version, text)
		}
	}
}

// A safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.String()
}

// drain empties the buffer, and returns what it held.
func (b *safeBuffer) drain() string {
	b.Lock()
	defer b.Unlock()
	defer b.Reset()
	return b.Buffer.String()
}
