package terminal

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// Bits of eight bytes.
const (
	ones = 0x0101010101010101
	high = 0x80 * ones
)

// textLen returns how many bytes of b come before the first control; "\n" and "\t" are text.
// Ordinary output spends most of its time here, so eight bytes are looked at at once.
func textLen(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		d := w ^ del*ones
		// The high bit of each byte that is below ' ' or is DEL. A borrow may set too many of them,
		// never too few.
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

// plainLen returns how many bytes of s come before the first control of more than a byte, and the
// first byte that is not UTF-8. Ordinary letters are told by their first byte, which is faster.
func plainLen(s []byte) int {
	for i := 0; i < len(s); {
		switch c, rest := s[i], s[i+1:]; {
		case c < utf8.RuneSelf:
			for i++; i+8 <= len(s) && binary.LittleEndian.Uint64(s[i:])&high == 0; {
				i += 8
			}
			continue
		case c > 0xc2 && c < 0xe0 && len(rest) > 0 && isContinuation(rest[0]):
			i += 2
			continue
		case c > 0xe2 && c < 0xed && len(rest) > 1 &&
			isContinuation(rest[0]) && isContinuation(rest[1]):
			i += 3
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && size == 1 || isControlRune(r) {
			return i
		}
		i += size
	}
	return len(s)
}

func isContinuation(c byte) bool { return c&0xc0 == 0x80 }

// isControlRune reports whether r is a control of more than a byte. C1 controls do what sequences
// do. The others change the direction of what comes after them. (Marks of direction, such as
// U+200F, are a part of text, and have no effect beyond their neighbours.)
func isControlRune(r rune) bool {
	return r >= 0x80 && r < firstPrintable ||
		r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

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

// runeWidth returns how many columns r takes: 0 for combining marks and the like, 2 for wide runes.
// It looks at runes one by one, as wcwidth(3) does, by which programs count: a family of emoji is
// as wide as its members together.
func runeWidth(r rune) int {
	switch {
	case r < 0x80, r >= 0xa0 && r < 0x300: // no marks and nothing wide before U+0300
		return 1
	case isControlRune(r):
		return 0
	case r >= 0x1f1e6 && r < 0x1f200: // regional indicators: a flag is two
		return 1
	}
	return displaywidth.Rune(r)
}
