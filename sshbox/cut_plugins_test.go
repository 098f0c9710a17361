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

// A cell under way is lost to who waits for it, but not to the kernel; the next one has a new
// connection.
func TestCutKernel(t *testing.T) {
	t.Parallel()
	testenv.NeedsFull(t, "it sets up a plugin that is large: the connections of a box are cut "+
		"every day")
	c := newCable(t)
	box := c.box(t, func(c *Config) {
		c.Plugins, c.PluginNetwork = []plugin.Plugin{jupyter.Plugin()}, "bridge"
	})
	kernel, err := jupyter.Connect(limit(t), box, jupyter.Config{})
	noError(t, err)
	defer kernel.Close()
	began := false
	_, err = kernel.Run(limit(t), "import time; print('begun', flush=True)\nfor i in range(30): "+
		"time.sleep(0.1)\nx = 41", jupyter.Stream(func(e jupyter.Event) {
		if !began {
			began = true
			c.Cut()
		}
	}))
	if !errors.Is(err, sandbox.ErrCut) {
		t.Errorf("the cell that was cut: %v", err)
	}
	for i := range 3 {
		for { // that it was cut is perhaps not known before the next cell
			if _, err = kernel.Run(limit(t), "pass"); err == nil {
				break
			}
			if !errors.Is(err, sandbox.ErrCut) {
				t.Fatal(err)
			}
		}
		res, err := kernel.Run(limit(t), "x += 1; x")
		noError(t, err)
		if want := strconv.Itoa(42 + i); res.Text != want {
			t.Errorf("%+v, not %s", res, want)
		}
		c.Cut()
	}

	c.Unplug(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := kernel.Run(ctx, "x = 0"); err == nil {
		t.Error("ran a cell without a connection")
	}
	c.Unplug(false)
	res, err := kernel.Run(limit(t), "x")
	noError(t, err)
	if res.Text != "44" {
		t.Errorf("connected again: %+v", res)
	}
}

// A browser is a Run, which goes on where it was cut.
func TestCutBrowser(t *testing.T) {
	t.Parallel()
	testenv.NeedsFull(t, "it sets up a plugin that is large: a Run, which the browser is, is cut "+
		"every day by TestCut")
	c := newCable(t)
	box := c.box(t, func(c *Config) {
		c.Plugins, c.PluginNetwork = []plugin.Plugin{browser.Plugin()}, "bridge"
	})
	b, err := browser.Open(limit(t), box, browser.Config{})
	noError(t, err)
	defer b.Close()
	noError(t, b.Navigate(limit(t), "data:text/html,<p id=n>0</p><button "+
		"onclick='n.textContent++'>More</button>"))
	for range 5 {
		c.Cut()
		noError(t, b.Click(limit(t), "button"))
		if png, err := b.Screenshot(limit(t)); err != nil || len(png) < 100 {
			t.Errorf("%d bytes, %v", len(png), err)
		}
	}
	text, err := b.Text(limit(t))
	noError(t, err)
	if !strings.HasPrefix(text, "5\n") {
		t.Errorf("got %q", text)
	}
	noError(t, b.Close())
}
