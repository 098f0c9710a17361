package terminal

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

const (
	ones = 0x0101010101010101 // the lowest bit of each of eight bytes
	high = 0x80 * ones        // the highest bit of each
)

// textLen returns how many bytes of b come before the first control. "\n" and "\t" are text.
// Ordinary output spends most of its time here, so it checks eight bytes at a time.
func textLen(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		d := w ^ del*ones
		// suspects has the high bit of each byte that is below ' ' or is DEL. A borrow may set the
		// bits of other bytes too.
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

// plainLen returns how many bytes of s come before the first invalid byte or control of several
// bytes. Ordinary letters are recognized by their first byte, which is faster than to decode them.
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

// isControlRune reports whether r is a control of several bytes: a C1 control, which does what an
// escape sequence does, or one that changes the direction of all text after it. (Directional marks,
// such as U+200F, are text, and affect only their neighbours.)
func isControlRune(r rune) bool {
	return r >= 0x80 && r < firstNonControl ||
		r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// asciiLen returns how many bytes of b come before the first byte that is not printable ASCII.
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

// runeWidth returns how many columns r takes: 0 for combining marks and other invisible runes, 2
// for wide runes. It treats each rune on its own, as wcwidth(3) does, because programs count
// columns so: a family of emoji is as wide as its members together.
func runeWidth(r rune) int {
	switch {
	case r < 0x80, r >= 0xa0 && r < 0x300: // no marks and nothing wide before U+0300
		return 1
	case isControlRune(r):
		return 0
	case r >= 0x1f1e6 && r < 0x1f200: // regional indicators, two of which make a flag
		return 1
	}
	return displaywidth.Rune(r)
}
