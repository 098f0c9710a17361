package terminal

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// textLen returns how many bytes of b come before the first control; "\n" and "\t" are text. Ordinary output spends most
// of its time here, so eight bytes are looked at at once.
func textLen(b []byte) int {
	const (
		ones = 0x0101010101010101
		high = 0x80 * ones
	)
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		d := w ^ del*ones
		// The high bit of each byte that is below ' ' or is DEL. A borrow may set too many of them, never too few.
		suspects := ((w-' '*ones)&^w | (d-ones)&^d) & high
		for ; suspects != 0; suspects &= suspects - 1 {
			if j := i + bits.TrailingZeros64(suspects)/8; isControl(b[j]) {
				return j
			}
		}
	}
	for ; i < len(b); i++ {
		if isControl(b[i]) {
			return i
		}
	}
	return i
}

func isControl(c byte) bool { return c < ' ' && c != '\n' && c != '\t' || c == del }

// asciiLen returns how many bytes of b come before the first that is not printable ASCII.
func asciiLen(b []byte) int {
	for i, c := range b {
		if c < ' ' || c >= del {
			return i
		}
	}
	return len(b)
}

// wholeRunes returns the length of b without an incomplete rune at its end.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// runeWidth returns how many columns r takes: 0 for combining marks and the like, 2 for wide runes. It looks at runes one
// by one, as wcwidth(3) does, by which programs count: a family of emoji is as wide as its members together.
func runeWidth(r rune) int {
	switch {
	case r < 0x80, r >= 0xa0 && r < 0x300: // no marks and nothing wide before U+0300
		return 1
	case r < 0xa0: // C1 controls
		return 0
	case r >= 0x1f1e6 && r < 0x1f200: // regional indicators: a flag is two
		return 1
	}
	return displaywidth.Rune(r)
}
