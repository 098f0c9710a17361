package sshbox

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/browser"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
)

// TestCutKernel cuts the connection to a kernel. The caller loses the cell that is running. The
// kernel does not: the next cell comes over a new connection.
func TestCutKernel(t *testing.T) {
	t.Parallel()
	testenv.NeedsFull(t, "it sets up a large plugin, and TestCut cuts a box's connections every "+
		"day")
	proxy := newEngineProxy(t)
	box := proxy.box(t, func(c *Config) {
		c.Plugins, c.PluginNetwork = []plugin.Plugin{jupyter.Plugin()}, "bridge"
	})
	kernel, err := jupyter.Connect(testContext(t), box, jupyter.Config{})
	noError(t, err)
	defer kernel.Close()
	began := false
	_, err = kernel.Run(testContext(t), "import time; print('begun', flush=True)\n"+
		"for i in range(30): time.sleep(0.1)\nx = 41", jupyter.Stream(func(e jupyter.Event) {
		if !began {
			began = true
			proxy.Cut()
		}
	}))
	if !errors.Is(err, sandbox.ErrCut) {
		t.Errorf("the cell that was running at the cut: %v", err)
	}
	for i := range 3 {
		for { // The kernel's client may notice the cut only at the next cell.
			if _, err = kernel.Run(testContext(t), "pass"); err == nil {
				break
			}
			if !errors.Is(err, sandbox.ErrCut) {
				t.Fatal(err)
			}
		}
		res, err := kernel.Run(testContext(t), "x += 1; x")
		noError(t, err)
		if want := strconv.Itoa(42 + i); res.Text != want {
			t.Errorf("got %+v, want %s", res, want)
		}
		proxy.Cut()
	}

	proxy.Unplug(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := kernel.Run(ctx, "x = 0"); err == nil {
		t.Error("a cell ran without a connection")
	}
	proxy.Unplug(false)
	res, err := kernel.Run(testContext(t), "x")
	noError(t, err)
	if res.Text != "44" {
		t.Errorf("after the outage: %+v", res)
	}
}

// TestCutBrowser cuts the connection of a browser, which is a Run. The Run goes on where it was
// cut.
func TestCutBrowser(t *testing.T) {
	t.Parallel()
	testenv.NeedsFull(t, "it sets up a large plugin, and TestCut cuts a Run, which the browser "+
		"is, every day")
	proxy := newEngineProxy(t)
	box := proxy.box(t, func(c *Config) {
		c.Plugins, c.PluginNetwork = []plugin.Plugin{browser.Plugin()}, "bridge"
	})
	b, err := browser.Open(testContext(t), box, browser.Config{})
	noError(t, err)
	defer b.Close()
	noError(t, b.Navigate(testContext(t), "data:text/html,<p id=n>0</p><button "+
		"onclick='n.textContent++'>More</button>"))
	for range 5 {
		proxy.Cut()
		noError(t, b.Click(testContext(t), "button"))
		if png, err := b.Screenshot(testContext(t)); err != nil || len(png) < 100 {
			t.Errorf("%d bytes, %v", len(png), err)
		}
	}
	text, err := b.Text(testContext(t))
	noError(t, err)
	if !strings.HasPrefix(text, "5\n") {
		t.Errorf("got %q", text)
	}
	noError(t, b.Close())
}
