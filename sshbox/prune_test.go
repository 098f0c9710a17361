package sshbox

import (
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/plugin"
)

// TestPruneAll removes all images with plugins, except while a box uses one.
func TestPruneAll(t *testing.T) {
	testenv.NeedsAll(t, "it removes images that other packages' tests use, and runs alone")
	d := testEngine(t)
	if os.Getenv("SANDSHELL_REQUIRE_DOCKER") != "1" {
		t.Skip("it would remove all images with plugins of this machine: " +
			"set SANDSHELL_REQUIRE_DOCKER=1 to allow it")
	}
	base := pluginBase(t)
	var n atomic.Int64
	box := newBox(t, Config{Image: base, Network: "none",
		Plugins: []plugin.Plugin{countedPlugin("tool", &n, "true")}})
	old := "sandshell-boxd-of-an-older-version"
	_, err := d.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: old,
		Labels: map[string]string{"sandshell.boxd": "123"}})
	noError(t, err)
	kept := pluginImage(t, base)
	pruned, err := Engine{}.Prune(t.Context())
	noError(t, err)
	if slices.Contains(pruned.Images, kept) || !slices.Contains(pruned.Volumes, old) {
		t.Errorf("while a box uses the image, Prune removed %q", pruned)
	}
	expect(t, box, "echo lives", 0, "lives\n")
	noError(t, box.Close())
	pruned, err = Engine{}.Prune(t.Context())
	noError(t, err)
	if !slices.Equal(pruned.Images, []string{kept}) || len(pruned.Volumes) != 0 {
		t.Errorf("after the box was closed, Prune removed %q", pruned)
	}
}
