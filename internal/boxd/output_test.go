//go:build linux

package main

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A spool keeps the last bytes. It waits only for a client that reads.
func TestSpoolKeepsTheLast(t *testing.T) {
	o, err := newSpool(1)
	require.NoError(t, err)
	defer o.free()
	all := make([]byte, 3*spoolMin+12345)
	for i := range all {
		all[i] = byte(i / 1000)
	}
	require.True(t, o.write(all)) // no client reads
	first := int64(len(all) - spoolMin)
	require.Equal(t, first, o.follow(nil, 0))
	require.Equal(t, all[first:], spooled(t, o, first))

	done := make(chan bool)
	go func() { done <- o.write([]byte("more")) }()
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool { // the write waits
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("writeSpool"))
	}, testenv.Limit, time.Millisecond)
	o.ack(nil, first+4)
	require.True(t, <-done)
	require.Equal(t, "more", string(spooled(t, o, int64(len(all)))))
	o.unfollow(nil)
	require.True(t, o.write(all))
	require.Equal(t, all[first:], spooled(t, o, o.follow(nil, -1)))
}

// On a full disk a spool continues in the room that it has, or in memory. It loses nothing that a
// client has not read.
func TestSpoolOnFullDisk(t *testing.T) {
	for _, room := range []int{0, 100_000, 2 * spoolMin} {
		fd, err := unix.MemfdCreate("spool", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, err)
		o := newOutput(0)
		o.spool, o.limit = os.NewFile(uintptr(fd), "spool"), 10*spoolMin
		o.follow(nil, 0)
		before, behind := bytes.Repeat([]byte("b"), room), bytes.Repeat([]byte("h"), 50_000)
		require.True(t, o.write(before))
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
		require.NoError(t, err)
		o.ack(nil, int64(room/2))
		require.True(t, o.write(behind))
		require.Equal(t, string(before[room/2:])+string(behind),
			string(spooled(t, o, int64(room/2))))
		o.free()
	}
}

// A slowDisk is a spool's file whose reads or writes wait.
type slowDisk struct {
	spoolFile
	reads, writes chan struct{} // a read or a write receives a value; nil: it does not wait
	begun         chan struct{} // has a value for each read or write that waits
}

func (d *slowDisk) WriteAt(p []byte, at int64) (int, error) {
	d.wait(d.writes)
	return d.spoolFile.WriteAt(p, at)
}

func (d *slowDisk) ReadAt(p []byte, at int64) (int, error) {
	d.wait(d.reads)
	return d.spoolFile.ReadAt(p, at)
}

func (d *slowDisk) wait(turn chan struct{}) {
	if turn != nil {
		d.begun <- struct{}{}
		<-turn
	}
}

// While the disk is slow, only the write or the read itself waits for it.
func TestSpoolOnSlowDisk(t *testing.T) {
	o, err := newSpool(1)
	require.NoError(t, err)
	defer o.free()
	require.True(t, o.write([]byte("before")))
	disk := &slowDisk{spoolFile: o.spool, writes: make(chan struct{}),
		begun: make(chan struct{}, 9)}
	o.spool = disk
	done := make(chan bool)
	go func() { done <- o.write([]byte(" behind")) }()
	<-disk.begun
	require.Equal(t, int64(0), o.follow(nil, -1))
	o.ack(nil, 6)
	require.Equal(t, int64(6), o.total())
	require.Equal(t, "before", string(spooled(t, o, 0)))
	disk.writes <- struct{}{}
	require.True(t, <-done)
	require.Equal(t, int64(13), o.total())

	// A slow read does not delay a write. If the write overwrites what is being read, the read
	// fails.
	o.unfollow(nil)
	disk.reads, disk.writes = make(chan struct{}), nil
	for _, much := range []bool{false, true} {
		text, failed := make(chan string), make(chan error, 1)
		go func() {
			buf := make([]byte, 6)
			n, err := o.read(buf, 0, nil)
			failed <- err
			text <- string(buf[:n])
		}()
		<-disk.begun
		require.True(t, o.write([]byte("more")))
		if much {
			require.True(t, o.write(make([]byte, spoolMin)))
		}
		disk.reads <- struct{}{}
		if much {
			require.ErrorIs(t, <-failed, io.ErrUnexpectedEOF)
			require.Empty(t, <-text)
		} else {
			require.NoError(t, <-failed)
			require.Equal(t, "before", <-text)
		}
	}
}

// A client that reads while a spool is written to gets every byte, even if the spool moves to
// memory.
func TestSpoolReadWhileWritten(t *testing.T) {
	for _, room := range []int64{1 << 40, 100_000} {
		o, fill := newOutput(0), make([]byte, 8<<20)
		for i := range fill {
			fill[i] = byte(i / 999)
		}
		fd, err := unix.MemfdCreate("spool", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, err)
		o.spool, o.limit = os.NewFile(uintptr(fd), "spool"), spoolMin
		if room < spoolMin {
			require.NoError(t, unix.Ftruncate(fd, room))
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
			require.NoError(t, err)
		}
		offset := o.follow(nil, 0)
		go o.fill(bytes.NewReader(fill))
		var all []byte
		buf := make([]byte, 50_000)
		for {
			n, err := o.read(buf, offset, nil)
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			all, offset = append(all, buf[:n]...), offset+int64(n)
			o.ack(nil, offset)
		}
		require.True(t, bytes.Equal(fill, all))
		o.free()
	}
}

// An attachment may still read when its program is forgotten: its last message took long to send.
func TestReadWhatWasFreed(t *testing.T) {
	spool, err := newSpool(1)
	require.NoError(t, err)
	for _, o := range []*output{newOutput(0), newOutput(terminalHistory), spool} {
		require.True(t, o.write([]byte("not read")))
		o.free()
		buf := make([]byte, 8)
		_, err := o.read(buf, 3, nil)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		_, err = o.read(buf, o.follow(nil, 0), nil)
		require.ErrorIs(t, err, io.EOF)
	}
}

// spooled returns what the spool has from offset on.
func spooled(t *testing.T, o *output, offset int64) (all []byte) {
	buf := make([]byte, 64<<10)
	for offset < o.total() {
		n, err := o.read(buf, offset, nil)
		require.NoError(t, err)
		all, offset = append(all, buf[:n]...), offset+int64(n)
	}
	return all
}

// A shell's prompts and Begin markers may wait for what follows, and come without it too.
func TestHold(t *testing.T) {
	o := newOutput(0)
	defer o.free()
	const begins = "\x1b]133;A\a\x1b]133;C;7;0123456789abcdef0123456789abcdef;\a"
	buf, offset := make([]byte, 4<<10), int64(0)
	expect := func(text string) {
		t.Helper()
		for len(text) > 0 {
			n, err := o.read(buf, offset, nil)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(text, string(buf[:n])), "%q", buf[:n])
			text, offset = text[n:], offset+int64(n)
		}
	}
	for range 3 {
		go func() {
			o.write([]byte(begins))
			o.write([]byte("output"))
			o.write([]byte(begins))
		}()
		expect(begins + "output" + begins)
	}
}
