package sftpmux_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/sftpmux"
	"github.com/stretchr/testify/require"
)

func packet(kind byte, text string) []byte {
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(text)+1)), kind), text...)
}

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

// TestBothWays sends messages from several goroutines between packets that are written in pieces.
func TestBothWays(t *testing.T) {
	var sent bytes.Buffer
	w := &sftpmux.Writer{WriteCloser: closer{&sent}}
	var packets []byte
	var sending sync.WaitGroup
	want := map[string]bool{}
	for i := range 100 {
		want[fmt.Sprint("message ", i)] = true
		sending.Go(func() {
			if err := w.Send(fmt.Append(nil, "message ", i)); err != nil {
				t.Error(err)
			}
		})
		p := packet(6, fmt.Sprint("packet ", i))
		packets = append(packets, p...)
		for _, piece := range [][]byte{p[:5], p[5:8], p[8:]} {
			n, err := w.Write(piece)
			require.NoError(t, err)
			require.Len(t, piece, n)
		}
	}
	sending.Wait()
	got := map[string]bool{}
	r := sftpmux.NewReader(iotest.OneByteReader(&sent), func(m []byte) error {
		got[string(m)] = true
		return nil
	})
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, string(packets), string(rest))
	require.Equal(t, want, got)
}

// TestHostileStream reads streams that no honest end sends.
func TestHostileStream(t *testing.T) {
	read := func(says []byte, take func([]byte) error) error {
		_, err := io.ReadAll(sftpmux.NewReader(bytes.NewReader(says), take))
		return err
	}
	none := func([]byte) error { return nil }
	require.ErrorAs(t, read([]byte("\xff\xff\xff\xff\xd2"), none), new(*bounded.TooLargeError))
	require.ErrorIs(t, read([]byte("\x00\x00\x00\x09\xd2abc"), none), io.ErrUnexpectedEOF)
	require.ErrorIs(t, read([]byte("\x00\x00\x00"), none), io.ErrUnexpectedEOF)
	refused := fmt.Errorf("refused")
	require.ErrorIs(t, read(packet(210, "x"), func([]byte) error { return refused }), refused)
}

// FuzzReader checks that what is no message passes as it is.
func FuzzReader(f *testing.F) {
	f.Add(append(packet(6, "a"), packet(210, "b")...))
	f.Add([]byte("\x00\x00\x00\x00\x06\x00\x00\x00\x02\xd2"))
	f.Fuzz(func(t *testing.T, says []byte) {
		messages := 0
		r := sftpmux.NewReader(bytes.NewReader(says), func(m []byte) error {
			messages += 5 + len(m)
			return nil
		})
		got, err := io.ReadAll(r)
		if err == nil {
			require.Equal(t, len(says), len(got)+messages)
		}
	})
}
