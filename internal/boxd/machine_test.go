//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// The file of marks is in the user's home, which may be on a network. While that stalls, only
// programs with a new mark wait for their start.
func TestStalledMarks(t *testing.T) {
	s := silentServer(t)
	s.dir = t.TempDir()
	fifo := filepath.Join(s.dir, machineMarks)
	require.NoError(t, syscall.Mkfifo(fifo, 0o600)) // an open to write waits for a reader
	start := func(id, mark string) <-chan error {
		result := make(chan error, 1)
		go func() {
			_, err := s.program(nil, &wire.Open{ID: id, Start: &wire.Start{
				Args: [][]byte{[]byte("/nowhere")},
				Env:  [][]byte{[]byte("SANDSHELL_SESSION=" + mark)}}})
			result <- err
		}()
		return result
	}
	first, second := start("1", "word.1"), start("2", "word.2")
	stalled := func(result <-chan error) {
		t.Helper()
		select {
		case err := <-result:
			t.Fatal("it did not wait for the mark: ", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	stalled(first)
	stalled(second)

	others := make(chan struct{})
	go func() {
		defer close(others)
		s.list(nil, false)
		s.forgetProgram(nil, "other")
		err := s.addOwner("key", wire.Claim{})
		require.NoError(t, err)
	}()
	select {
	case <-others:
	case <-time.After(testenv.Limit):
		t.Fatal("list, forget and logins wait for the disk")
	}
	require.ErrorIs(t, <-start("3", "no dot"), os.ErrNotExist)

	reader, err := os.OpenFile(fifo, os.O_RDONLY, 0)
	require.NoError(t, err)
	defer reader.Close()
	require.ErrorIs(t, <-first, os.ErrNotExist)
	require.ErrorIs(t, <-second, os.ErrNotExist)
	marks, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, "SANDSHELL_SESSION=word.\n", string(marks))
	require.True(t, s.marked("SANDSHELL_SESSION=word"), s.marks)
}
