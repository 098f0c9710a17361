// Package headtail keeps the beginning and the end of an output that may be longer than memory
// should hold.
package headtail

import (
	"slices"
	"unicode/utf8"
)

// A Buffer keeps the head and the tail of what is written to it, up to Max bytes in all, and counts
// the bytes in between. The zero value with a Max is ready for use. A Buffer must not be used
// concurrently.
//
// It cuts between runes: a rune that would be kept in part is left out. Bytes that are not UTF-8
// are kept, except that up to three of them may be left out on each side of the cut.
type Buffer struct {
	// Max is how many bytes Text returns: the first Max/2 as the head, the rest as the tail. It may
	// be changed at any time. A larger Max applies to later writes; a smaller one also to the bytes
	// that are already kept.
	Max int

	head    []byte
	omitted int64 // bytes between head and tail
	// tail grows to twice the size that is kept. Then its older half is dropped, so each byte is
	// moved once at most.
	tail []byte
}

// Write implements io.Writer. It takes all of p, and never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	write(b, p)
	return len(p), nil
}

// WriteString is Write for a string.
func (b *Buffer) WriteString(s string) (int, error) {
	write(b, s)
	return len(s), nil
}

func write[T []byte | string](b *Buffer, p T) {
	half := max(b.Max, 0) / 2
	if b.omitted == 0 && len(b.tail) == 0 && len(b.head) < half {
		n := min(half-len(b.head), len(p))
		b.head, p = append(b.head, p[:n]...), p[n:]
	}
	keep := max(b.Max, 0) - half
	if more := len(p) - keep; more > 0 {
		b.omitted += int64(len(b.tail) + more)
		b.tail, p = b.tail[:0], p[more:]
	}
	if size := len(b.tail) + len(p); size > 2*keep {
		b.omitted += int64(size - keep)
		b.tail = append(b.tail[:0], b.tail[size-keep:]...)
	}
	b.tail = append(b.tail, p...)
}

// Skip counts n bytes as written and omitted. Later writes go to the tail.
func (b *Buffer) Skip(n int64) {
	b.omitted += n + int64(len(b.tail))
	b.tail = b.tail[:0]
}

// Len returns how many bytes Next can take, which may be more than Text returns.
func (b *Buffer) Len() int { return len(b.head) + len(b.tail) }

// Bytes returns a copy of the bytes that Next can take.
func (b *Buffer) Bytes() []byte { return slices.Concat(b.head, b.tail) }

// Next removes the first n bytes from b and returns them as a Buffer of the same Max. The bytes
// omitted before the last of those n are counted in the returned Buffer.
func (b *Buffer) Next(n int) Buffer {
	if n < len(b.head) {
		first := Buffer{Max: b.Max, head: b.head[:n:n]}
		b.head = slices.Clone(b.head[n:])
		return first
	}
	n -= len(b.head)
	first := Buffer{Max: b.Max, head: b.head, omitted: b.omitted, tail: b.tail[:n:n]}
	rest := b.tail[n:]
	b.Reset()
	b.Write(rest)
	return first
}

// Reset makes b empty and frees its memory. Max stays.
func (b *Buffer) Reset() { *b = Buffer{Max: b.Max} }

// Clone returns a copy of b.
func (b *Buffer) Clone() Buffer {
	return Buffer{Max: b.Max, head: slices.Clone(b.head), omitted: b.omitted,
		tail: slices.Clone(b.tail)}
}

// Text returns head and tail as one string, and how many bytes are omitted between the two. It
// returns an output of at most Max bytes whole.
func (b *Buffer) Text() (text string, omitted int64) {
	head, tail, omitted := b.HeadTail()
	return head + tail, omitted
}

// HeadTail is Text with head and tail apart. If nothing is omitted, tail is empty.
func (b *Buffer) HeadTail() (head, tail string, omitted int64) {
	head, tail = string(b.head), string(b.tail)
	most := max(b.Max, 0)
	written := b.omitted + int64(b.Len())
	if b.omitted == 0 {
		all := head + tail
		if len(all) <= most {
			return all, "", 0
		}
		head, tail = all, all
	}
	head = trimEnd(head[:min(most/2, len(head))])
	tail = trimStart(tail[max(len(tail)-(most-most/2), 0):])
	return head, tail, written - int64(len(head)+len(tail))
}

// trimEnd removes an incomplete rune at the end of s.
func trimEnd(s string) string {
	for i := len(s) - 1; i >= max(len(s)-utf8.UTFMax+1, 0); i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return s[:i]
			}
			break
		}
	}
	return s
}

// trimStart removes bytes at the start of s that continue a rune.
func trimStart(s string) string {
	n := 0
	for n < min(len(s), utf8.UTFMax-1) && !utf8.RuneStart(s[n]) {
		n++
	}
	return s[n:]
}
