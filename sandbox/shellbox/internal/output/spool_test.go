package output

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// TestSpool checks that a spool returns the last output, up to its bound, by the offsets of the
// whole output.
func TestSpool(t *testing.T) {
	for _, bound := range []int64{0, 1, 1000, 1 << 20} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			s := NewSpool(bound)
			defer s.Close()
			var all []byte
			for i := 0; len(all) < 100_000; i++ {
				p := bytes.Repeat([]byte{byte(i)}, rand.IntN(5000))
				all = append(all, p...)
				s.Write(p)
			}
			first := 0
			if bound > 0 {
				first = max(0, len(all)-int(bound))
			}
			for _, offset := range []int{0, first, first + 1, len(all) - 1, len(all)} {
				offset = min(offset, len(all))
				data, next, err := s.Read(int64(offset), len(all))
				require.NoError(t, err)
				require.EqualValues(t, len(all), next)
				require.True(t, bytes.Equal(all[max(offset, first):], data))
			}
			if info, err := s.f.Stat(); bound > 0 {
				require.NoError(t, err)
				require.LessOrEqual(t, info.Size(), bound, "the file does not grow")
			}
			_, _, err := s.Read(int64(len(all)+1), 1)
			require.Error(t, err)
			p, err := s.Text(24, 80)
			require.NoError(t, err)
			require.EqualValues(t, first, p.omitted)
		})
	}
}

// A short log needs no file.
func TestShortSpool(t *testing.T) {
	s := NewSpool(0)
	s.Write([]byte("one\ntwo"))
	require.Nil(t, s.f)
	data, next, err := s.Read(4, 2)
	require.NoError(t, err)
	require.Equal(t, "tw", string(data))
	require.EqualValues(t, 6, next)
	s.Close()
	_, _, err = s.Read(0, 1)
	require.ErrorIs(t, err, sandbox.ErrClosed)
}
