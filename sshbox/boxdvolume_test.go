package sshbox

import (
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestBoxThatMounts shows that a box with the capability to mount gets a volume of its own for
// boxd, so that it cannot change the boxd of other boxes.
func TestBoxThatMounts(t *testing.T) {
	t.Parallel()
	testenv.NeedsAll(t, "it makes many containers: TestBoxdVolumeConfined runs every day")
	d := testEngine(t)
	victim := newBox(t, Config{Image: testImage, Network: "none"})
	expect(t, victim, "sha256sum /.sandshell/boxd >/tmp/sum", 0, "")
	mounted := func(box *DockerSSHBox) container.MountPoint {
		t.Helper()
		r, err := d.ContainerInspect(t.Context(), box.ContainerID(),
			client.ContainerInspectOptions{})
		noError(t, err)
		for _, m := range r.Container.Mounts {
			if m.Destination == wire.Dir {
				return m
			}
		}
		t.Fatalf("boxd is not mounted: %+v", r.Container.Mounts)
		panic("")
	}
	shared := mounted(victim).Name
	for _, c := range []Config{
		{CapAdd: []string{"sys_admin"}}, {CapAdd: []string{"ALL"}},
		{CapAdd: []string{"CAP_SYS_ADMIN"}, CapDrop: []string{"ALL"}, ReadOnlyRoot: true},
		{CapAdd: []string{"SYS_ADMIN"}, Keep: true},
	} {
		c.Image, c.Network = testImage, "none"
		box, err := New(t.Context(), c)
		if err != nil && strings.Contains(err.Error(), "unable to apply caps") {
			t.Logf("this engine cannot give capabilities %v: %v", c.CapAdd, err)
			continue
		}
		noError(t, err)
		defer box.Close()
		own := mounted(box)
		if own.Name == shared || own.Name == "" {
			t.Errorf("%+v: boxd comes from %+v", c, own)
		}
		// An attack on boxd's volume.
		r, err := box.Execute(t.Context(), "mount -o remount,rw /.sandshell && echo x "+
			">/.sandshell/x && mv /.sandshell/x /.sandshell/boxd && echo done")
		noError(t, err)
		if r.Output != "done\n" {
			t.Logf("this engine does not let the box mount: %q", r.Output)
		}
		expect(t, victim, "[ ! -e /.sandshell/x ] && sha256sum --quiet -c /tmp/sum", 0, "")
		noError(t, box.Close())
		if _, err := d.VolumeInspect(t.Context(), own.Name,
			client.VolumeInspectOptions{}); !errdefs.IsNotFound(err) {
			t.Errorf("the volume still exists after Close: %v", err)
		}
	}
	// Boxes that cannot mount share a volume.
	for _, c := range []Config{{}, {CapAdd: []string{"NET_ADMIN"}},
		{CapAdd: []string{"SYS_ADMIN"}, CapDrop: []string{"SYS_ADMIN"}}} {
		c.Image, c.Network = testImage, "none"
		box := newBox(t, c)
		if m := mounted(box); m.Name != shared || m.RW {
			t.Errorf("%+v: boxd comes from %+v", c, m)
		}
		r, err := box.Execute(t.Context(), "mount -o remount,rw /.sandshell || echo x "+
			">/.sandshell/x")
		noError(t, err)
		if r.ExitCode == 0 {
			t.Errorf("%+v: the shared volume can be written: %+v", c, r)
		}
		noError(t, box.Close())
	}
}
