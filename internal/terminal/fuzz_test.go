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
		// Each byte of raw makes at most maxGap columns.
		require.LessOrEqual(t, len(whole), (maxGap+1)*len(raw))

		if textLen(raw) == len(raw) && plainLen(raw) == len(raw) {
			require.Equal(t, string(raw), string(whole), "plain")
		}
		require.True(t, utf8.Valid(whole), "%q", whole)
		for _, c := range string(whole) {
			require.False(t, isControl(byte(min(c, '~'))) || isControlRune(c), "%q", whole)
		}
		var small, steps Cleaner // on a small screen, and in steps
		small.SetSize(1+r.IntN(6), 1+r.IntN(20))
		steps = small
		text, inSteps := small.AppendOpen(small.Flush(small.Append(nil, raw))), []byte(nil)
		for rest, more := raw, true; more; {
			inSteps, rest, more = steps.AppendStep(inSteps, rest)
		}
		require.Equal(t, string(text), string(steps.AppendOpen(steps.Flush(inSteps))), "in steps")
		require.LessOrEqual(t, len(small.page.rows), small.page.height)

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
