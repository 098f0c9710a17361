package terminal

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func addSeeds(f *testing.F) {
	for _, test := range cleanerTests {
		f.Add([]byte(test.raw), uint64(1))
	}
	r := rand.New(rand.NewPCG(11, 12))
	for range 50 {
		f.Add(randomOutput(r, 20), r.Uint64())
	}
}

func FuzzCleaner(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		whole := clean(raw)
		r := rand.New(rand.NewPCG(seed, 0))
		require.Equal(t, string(whole), string(clean(cut(raw, r)...)), "in pieces")
		// Each byte makes at most maxGap columns, of up to a byte and marks.
		require.LessOrEqual(t, len(whole), (maxGap+1)*len(raw))

		if textLen(raw) == len(raw) && plainLen(raw) == len(raw) {
			require.Equal(t, string(raw), string(whole), "plain")
		}
		require.True(t, utf8.Valid(whole), "%q", whole)
		for _, r := range string(whole) {
			require.False(t, isControl(byte(min(r, '~'))) || isControlRune(r), "%q", whole)
		}
		again := clean(whole)
		require.Equal(t, string(whole), string(again), "cleaned again")
	})
}

func FuzzRender(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		checkRender(t, raw, 1+r.IntN(40), 1+r.IntN(120))
	})
}
