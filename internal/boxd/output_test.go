//go:build linux

package main

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A spool keeps the last bytes. It waits for a client that reads, and for nobody else.
func TestSpoolKeepsTheLast(t *testing.T) {
	o, err := newSpool(1)
	require.NoError(t, err)
	defer o.free()
	all := make([]byte, 3*spoolLeast+12345)
	for i := range all {
		all[i] = byte(i / 1000)
	}
	require.True(t, o.write(all)) // nobody reads
	first := int64(len(all) - spoolLeast)
	require.Equal(t, first, o.follow(0))
	require.Equal(t, all[first:], spooled(t, o, first))

	done := make(chan bool)
	go func() { done <- o.write([]byte("more")) }()
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool { // it waits
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("writeSpool"))
	}, 10*time.Second, time.Millisecond)
	o.ack(first + 4)
	require.True(t, <-done)
	require.Equal(t, "more", string(spooled(t, o, int64(len(all)))))
	o.unfollow()
	require.True(t, o.write(all))
	require.Equal(t, all[first:], spooled(t, o, o.follow(-1)))
}

// On a full disk a spool goes on in the room that it has, or in memory, and loses nothing that a
// client has not read.
func TestSpoolOnFullDisk(t *testing.T) {
	for _, room := range []int{0, 100_000, 2 * spoolLeast} {
		fd, err := unix.MemfdCreate("spool", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, err)
		o := newOutput(0)
		o.spool, o.most = os.NewFile(uintptr(fd), "spool"), 10*spoolLeast
		o.follow(0)
		before, behind := bytes.Repeat([]byte("b"), room), bytes.Repeat([]byte("h"), 50_000)
		require.True(t, o.write(before))
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
		require.NoError(t, err)
		o.ack(int64(room / 2))
		require.True(t, o.write(behind))
		require.Equal(t, string(before[room/2:])+string(behind),
			string(spooled(t, o, int64(room/2))))
		o.free()
	}
}

// spooled returns what there is from offset on.
func spooled(t *testing.T, o *output, offset int64) (all []byte) {
	buf := make([]byte, 64<<10)
	for offset < o.total() {
		n, err := o.read(buf, offset, nil)
		require.NoError(t, err)
		all, offset = append(all, buf[:n]...), offset+int64(n)
	}
	return all
}
