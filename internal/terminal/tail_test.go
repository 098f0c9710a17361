package terminal

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTail(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{-1, 0, 1, 2, 7, 100, 5000, 10000} {
		tail := NewTail(n)
		var all []byte
		for i := range 300 {
			p := make([]byte, r.IntN(1+r.IntN(200)))
			if i%50 == 49 {
				p = make([]byte, max(n, 0)+r.IntN(3))
			}
			for j := range p {
				p[j] = byte(r.Uint32())
			}
			written, err := tail.Write(p)
			require.NoError(t, err)
			require.Equal(t, len(p), written)
			all = append(all, p...)
			require.Equal(t, string(all[max(len(all)-max(n, 0), 0):]), string(tail.Bytes()), "%d",
				n)
		}
		tail.Reset()
		assert.Empty(t, tail.Bytes())
		tail.Write([]byte("abc"))
		assert.Equal(t, "abc"[3-min(max(n, 0), 3):], string(tail.Bytes()))
	}
}

func TestTailGrowsAsNeeded(t *testing.T) {
	tail := NewTail(1 << 20)
	assert.Zero(t, cap(tail.data))
	tail.Write([]byte("abc"))
	assert.LessOrEqual(t, cap(tail.data), 4096)
	for range 1 << 10 {
		tail.Write(make([]byte, 3000))
	}
	assert.Equal(t, 1<<20, cap(tail.data))
}

func TestTailBytesIsACopy(t *testing.T) {
	tail := NewTail(3)
	tail.Write([]byte("abc"))
	b := tail.Bytes()
	tail.Write([]byte("d"))
	assert.Equal(t, "abc", string(b))
	assert.Equal(t, "bcd", string(tail.Bytes()))
}
