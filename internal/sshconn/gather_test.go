package sshconn

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A gatherer delivers all bytes in order, whatever the sizes of the writes, and those that nothing
// follows too.
func TestGatherer(t *testing.T) {
	near, far := net.Pipe()
	g := &gatherer{Conn: near}
	var sent bytes.Buffer
	write := func(n int) {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(rand.Uint32())
		}
		sent.Write(p)
		m, err := g.Write(p)
		require.NoError(t, err)
		require.Equal(t, n, m)
	}
	received := make(chan []byte)
	for range 200 {
		sent.Reset()
		var writes []int
		for range 1 + rand.N(5) {
			writes = append(writes, []int{1, gatherPiece, 28 << 10, gatherMax}[rand.N(4)])
		}
		writes = append(writes, gatherPiece)
		total := 0
		for _, n := range writes {
			total += n
		}
		go func() {
			b := make([]byte, total)
			io.ReadFull(far, b)
			received <- b
		}()
		for _, n := range writes {
			write(n)
		}
		require.Equal(t, sent.Bytes(), <-received)
	}
	g.Write(make([]byte, gatherPiece)) // nobody reads it
	require.NoError(t, g.Close())
	_, err := g.Write([]byte{1})
	require.Error(t, err)
}
