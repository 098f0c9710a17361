package sshconn

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStreamCarries(t *testing.T) {
	c, server := connect(t)
	s, far := open(t, c, server)
	s.Credit = 100                                          // the writes use it up
	sent := bytes.Repeat([]byte("0123456789abcdef"), 9<<14) // more than a window, 2 MiB
	go func() {
		got, _ := io.ReadAll(far)
		io.WriteString(far.Stderr(), "err")
		far.Write(got)
		far.Close()
	}()
	wrote := async(func() error {
		for _, part := range [][]byte{sent[:60], sent[60:110], sent[110:]} {
			if _, err := s.Write(part); err != nil {
				return err
			}
		}
		return s.CloseWrite()
	})
	errs := async(func() []byte { b, _ := io.ReadAll(s.Err); return b })
	got, err := io.ReadAll(s.Out)
	require.NoError(t, err)
	require.NoError(t, soon(t, "the write", wrote))
	require.True(t, bytes.Equal(sent, got), "%d bytes came back of %d", len(got), len(sent))
	require.Equal(t, "err", string(soon(t, "standard error", errs)))
	_, err = s.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed, "after CloseWrite")
	s.Close()
}

// TestCloseFreesRead checks that Close ends a Read. x/crypto's Read goes on until the server
// answers.
func TestCloseFreesRead(t *testing.T) {
	c, server := connect(t)
	s, far := open(t, c, server)
	defer far.Close()
	read := async(func() error { _, err := s.Out.Read(make([]byte, 1)); return err })
	_, err := far.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, soon(t, "a byte", read))
	read = async(func() error { _, err := s.Out.Read(make([]byte, 1)); return err })
	waitForRead(t, s.Out)
	s.Close()
	require.ErrorIs(t, soon(t, "the read", read), net.ErrClosed)
	_, err = s.Out.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	s.Close() // again
}

// waitForRead waits until a Read of p is under way.
func waitForRead(t testing.TB, p *Pump) {
	t.Helper()
	for end := time.Now().Add(patience); len(p.reading) == 0; time.Sleep(time.Millisecond) {
		require.False(t, time.Now().After(end), "no read is under way")
	}
}

// TestCloseFreesWrite checks that Close ends a Write that waits because the server's window is
// full.
func TestCloseFreesWrite(t *testing.T) {
	c, server := connect(t)
	s, far := open(t, c, server)
	defer far.Close()
	// 2 MiB is the window of x/crypto's server (channelWindowSize).
	_, err := s.Write(make([]byte, 2<<20))
	require.NoError(t, err)
	wrote := async(func() error { _, err := s.Write([]byte("x")); return err })
	for end := time.Now().Add(patience); len(s.writing) == 0; time.Sleep(time.Millisecond) {
		require.False(t, time.Now().After(end), "no write is under way")
	}
	require.NoError(t, s.CloseWrite(), "it does not wait for the write")
	s.Close()
	require.ErrorIs(t, soon(t, "the write", wrote), net.ErrClosed)
	_, err = s.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestStreamDeadlines(t *testing.T) {
	c, server := connect(t)
	s, far := open(t, c, server)
	defer far.Close()
	f := &forwarded{Stream: s}
	past := time.Now().Add(-time.Second)
	require.NoError(t, f.SetDeadline(past))
	for range 20 { // select chooses at random among ready cases
		_, err := f.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = f.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}

	require.NoError(t, f.SetDeadline(time.Time{}))
	read := async(func() error { _, err := f.Read(make([]byte, 1)); return err })
	waitForRead(t, s.Out)
	require.NoError(t, f.SetReadDeadline(past)) // while a Read is under way
	require.ErrorIs(t, soon(t, "the read", read), os.ErrDeadlineExceeded)

	require.NoError(t, f.SetReadDeadline(time.Time{}))
	_, err := far.Write([]byte("after"))
	require.NoError(t, err)
	b := make([]byte, 5)
	_, err = io.ReadFull(f, b)
	require.NoError(t, err)
	require.Equal(t, "after", string(b), "nothing is lost by a deadline")
	require.NoError(t, f.Close())
}

// TestConnCloseFreesStreams checks that closing a connection ends the reads and writes of its
// streams.
func TestConnCloseFreesStreams(t *testing.T) {
	c, server := connect(t)
	s, far := open(t, c, server)
	defer far.Close()
	read := async(func() error { _, err := s.Out.Read(make([]byte, 1)); return err })
	waitForRead(t, s.Out)
	c.Close()
	require.ErrorIs(t, soon(t, "the read", read), net.ErrClosed)
	_, err := s.Write([]byte("x"))
	require.Error(t, err)
}
