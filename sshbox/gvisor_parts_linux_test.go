//go:build linux

package sshbox

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// gvisorOneMoment checks that a copy's files and memory are of one moment: a program compares them.
func gvisorOneMoment(t *testing.T, d *client.Client) {
	ctx := t.Context()
	box := gvisorBox(t, Config{Docker: d, Image: testImage, Network: "none", Runtime: "runsc"})
	require.NoError(t, box.Files().WriteFile(ctx, "/srv/p.py", []byte(`
import os
i = 0
f = open("/srv/appended", "a+")
while True:
    with open("/srv/n", "w") as n: n.write(str(i))
    f.write("x"); f.flush()
    assert open("/srv/n").read() == str(i), "n"
    assert os.stat("/srv/appended").st_size == i + 1, "appended"
    i += 1
`), 0o644))
	job, err := box.Background(ctx, "python3 /srv/p.py")
	require.NoError(t, err)
	waitFor(t, "it to write", func() bool {
		return text(t, box, "stat -c %s /srv/appended 2>/dev/null || echo 0") > "1000"
	})
	for range 3 {
		boxes, err := box.Fork(ctx, 2)
		require.NoError(t, err)
		for _, b := range append(boxes, box) {
			size := text(t, b, "stat -c %s /srv/appended")
			waitFor(t, "it to go on", func() bool {
				return text(t, b, "stat -c %s /srv/appended") != size
			})
			j, ok := b.Job(job.ID())
			require.True(t, ok)
			select {
			case <-j.Done():
				log, _, _ := j.Logs(ctx, 0)
				t.Errorf("it has ended: %s", log)
			default:
			}
		}
		for _, b := range boxes {
			require.NoError(t, b.Close())
		}
	}
	require.NoError(t, box.Close())
}

// gvisorMounts checks that a tmpfs is in a copy, and that a volume is a loss.
func gvisorMounts(t *testing.T, d *client.Client) {
	ctx := t.Context()
	box := gvisorBox(t, Config{Docker: d, Image: dockertest.Busybox, Network: "none",
		Runtime: "runsc", Mounts: []Mount{{Type: Tmpfs, Target: "/scratch"},
			{Type: Volume, Source: "sandshell-test-gvisor", Target: "/volume"}}})
	t.Cleanup(func() {
		d.VolumeRemove(context.Background(), "sandshell-test-gvisor", client.VolumeRemoveOptions{})
	})
	expect(t, box, "echo scratch >/scratch/f; echo shm >/dev/shm/f; echo volume >/volume/f", 0, "")
	_, err := box.Fork(ctx, 1)
	var lost *sandbox.IncompleteError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, "mount /volume (volume)", told(lost.Lost))
	boxes, err := box.Fork(ctx, 1, sandbox.Accept(sandbox.Mounts))
	require.NoError(t, err)
	expect(t, boxes[0], "cat /scratch/f /dev/shm/f /volume/f; echo own >/scratch/f", 0,
		"scratch\nshm\nvolume\n")
	expect(t, box, "cat /scratch/f", 0, "scratch\n")
	require.NoError(t, boxes[0].Close())
	require.NoError(t, box.Close())
}

// gvisorBusybox copies sessions of another shell, whose RANDOM gets another seed too, in a box with
// boxd in a volume of its own.
func gvisorBusybox(t *testing.T, d *client.Client) {
	box := gvisorBox(t, Config{Docker: d, Image: dockertest.Busybox, Network: "none",
		Runtime: "sandboxed"})
	expect(t, box, "f() { echo f$X; }; X=1; cd /tmp; sleep 1000 & ", 0, "")
	boxes, err := box.Fork(t.Context(), 2)
	require.NoError(t, err)
	for _, b := range boxes {
		expect(t, b, "f; pwd; kill -0 $! && echo sleeps", 0, "f1\n/tmp\nsleeps\n")
		identity(t, d, b)
	}
	require.NotEqual(t, text(t, boxes[0], "echo $RANDOM $RANDOM"),
		text(t, boxes[1], "echo $RANDOM $RANDOM"))
	for _, b := range boxes {
		require.NoError(t, b.Close())
	}
	require.NoError(t, box.Close())
}

// gvisorAttached copies a box in which a Listen, a Watch and a Run are under way. A copy has none
// of these, because they belong to the connection to the box. They go on in the box itself.
func gvisorAttached(t *testing.T, d *client.Client) {
	ctx := t.Context()
	box := gvisorBox(t, Config{Docker: d, Image: testImage, Network: "none", Runtime: "runsc"})
	l, err := box.Listen(ctx, "tcp", "127.0.0.1:9000")
	require.NoError(t, err)
	in, running := io.Pipe()
	var code int
	done := make(chan error, 1)
	go func() {
		var err error
		code, err = box.Run(ctx, &sandbox.Cmd{Args: []string{"cat"}, Stdin: in})
		done <- err
	}()
	waitFor(t, "the Run", func() bool { return text(t, box, "pidof cat | wc -w") == "1\n" })
	boxes, err := box.Fork(ctx, 2)
	require.NoError(t, err)
	for _, b := range boxes {
		expect(t, b, "pidof cat; exec 3<>/dev/tcp/127.0.0.1/9000", 1, "bash: connect: Connection "+
			"refused\nbash: /dev/tcp/127.0.0.1/9000: Connection refused\n")
		own, err := b.Listen(ctx, "tcp", "127.0.0.1:9000")
		require.NoError(t, err)
		require.NoError(t, own.Close())
		require.NoError(t, b.Close())
	}
	expect(t, box, "exec 3<>/dev/tcp/127.0.0.1/9000", 0, "")
	conn, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, running.Close())
	require.NoError(t, <-done)
	require.Zero(t, code)
	require.NoError(t, l.Close())
	require.NoError(t, box.Close())
}

// gvisorFilesInMemory checks that the error says what to do where gVisor keeps files in memory.
func gvisorFilesInMemory(t *testing.T, d *client.Client) {
	box := gvisorBox(t, Config{Docker: d, Image: dockertest.Busybox, Network: "none",
		Runtime: "runsc-memory"})
	expect(t, box, "echo >/file", 0, "")
	_, err := box.Snapshot(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "--overlay2=none")
	text(t, box, "sleep 1000 &")
	_, err = box.Snapshot(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "--overlay2=none")
	var lost *sandbox.IncompleteError
	require.ErrorAs(t, err, &lost)
	require.NoError(t, box.Close())
}

// gvisorRefused checks that a box goes on after a Snapshot whose ctx has ended, and is not left
// paused.
func gvisorRefused(t *testing.T, d *client.Client) {
	box := gvisorBox(t, Config{Docker: d, Image: dockertest.Busybox, Network: "none",
		Runtime: "runsc"})
	for limit := 10 * time.Millisecond; ; limit += limit / 3 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		s, err := box.Snapshot(ctx)
		cancel()
		expect(t, box, "echo runs", 0, "runs\n")
		if err == nil {
			require.NoError(t, s.Remove(t.Context()))
			break
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.NoError(t, box.Close())
}
