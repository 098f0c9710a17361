//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A job's output waits while the disk is full, and goes on when others have made room, whatever the client has acknowledged.
func TestSpoolOnFullDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spool")
	good, err := os.Create(file)
	require.NoError(t, err)
	full, err := os.Open(file) // refuses each write
	require.NoError(t, err)
	defer full.Close()
	o := newOutput(0)
	defer o.free()
	o.spool = good
	require.True(t, o.write([]byte("before ")))
	o.spool = full
	done := make(chan bool)
	go func() { done <- o.write([]byte("behind")) }()
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool { // it waits
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("sync.(*Cond).Wait"))
	}, 10*time.Second, time.Millisecond)
	o.mu.Lock()
	o.spool = good
	o.mu.Unlock()
	require.True(t, <-done)
	buf := make([]byte, 100)
	n, err := o.read(buf, 0, nil)
	require.NoError(t, err)
	require.Equal(t, "before behind", string(buf[:n]))
}

// What is shrunk on a full disk keeps all that is not acknowledged, and needs no more room than it has.
func TestSpoolShrinks(t *testing.T) {
	fd, err := unix.MemfdCreate("spool", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	o := newOutput(0)
	defer o.free()
	o.spool = os.NewFile(uintptr(fd), "spool")
	acknowledged, rest := bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("r"), 60_000)
	require.True(t, o.write(acknowledged))
	require.True(t, o.write(rest))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	require.NoError(t, err)
	require.False(t, o.shrink())
	o.ack(50_000)
	require.False(t, o.shrink(), "what is left does not fit into the place of what is acknowledged")
	o.ack(100_000)
	require.True(t, o.shrink())
	buf := make([]byte, 200_000)
	n, err := o.read(buf, 100_000, nil)
	require.NoError(t, err)
	require.Equal(t, rest, buf[:n])
	info, err := o.spool.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 60_000, info.Size())
}
