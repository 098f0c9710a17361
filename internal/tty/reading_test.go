//go:build linux || darwin || freebsd || netbsd || openbsd

package tty_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/internal/tty"
)

// From the moment when the kernel has given output away until the reader waits again, not all has
// been dealt with, however long the reader is held up.
func TestReading(t *testing.T) {
	master, end, err := programs.OpenTerminal(0, 0)
	require.NoError(t, err)
	defer master.Close()
	defer end.Close()
	conn, err := master.SyscallConn()
	require.NoError(t, err)

	var reading tty.Reading
	require.False(t, reading.Done(master), "nobody has read yet")
	waits := make(chan struct{}, 1)
	taken, deal := make(chan string, 9), make(chan struct{})
	defer close(deal) // first: Close waits for the read
	go func() {
		buf := make([]byte, 100)
		for reading.Wait(conn, func(fd uintptr) bool {
			n, err := unix.Read(int(fd), buf)
			if errors.Is(err, unix.EAGAIN) {
				waits <- struct{}{}
				return false
			}
			taken <- string(buf[:max(n, 0)])
			<-deal // held up before the call returns
			return true
		}) == nil {
			<-deal // and after it
		}
		close(taken)
	}()
	for _, text := range []string{"one", "two"} {
		<-waits
		for !reading.Done(master) { // the reader is about to wait
		}
		_, err = end.WriteString(text)
		require.NoError(t, err)
		require.Equal(t, text, <-taken)
		require.False(t, tty.Readable(master))
		require.False(t, reading.Done(master), "the read has not returned")
		deal <- struct{}{}
		require.False(t, reading.Done(master), "the reader has not dealt with it")
		deal <- struct{}{}
	}
	<-waits
	master.Close()
	_, open := <-taken
	require.False(t, open)
	require.False(t, reading.Done(master), "nobody reads any more")
}
