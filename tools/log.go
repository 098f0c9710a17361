package tools

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/sandshell/sandshell/sandbox"
)

// A log keeps the last max bytes of what the commands of a shell have printed, in the form of their
// Results. Offsets count everything that was printed. Its methods may be called from several
// goroutines.
type log struct {
	max int

	mu   sync.Mutex
	data []byte // up to 2*max bytes; then the older half is dropped, so a byte moves at most once
	size int64  // bytes of everything that was printed
}

// grow makes the log keep at least the last n bytes.
func (l *log) grow(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.max = max(l.max, n)
}

// add appends a Result's output, and returns the offset of its first byte.
func (l *log) add(r *sandbox.Result) (from int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from = l.size
	l.writeLocked(r.Output[:r.OmittedAt])
	if r.Omitted > 0 { // data has to be in one piece
		l.size += r.Omitted
		l.data = nil
	}
	l.writeLocked(r.Output[r.OmittedAt:])
	return from
}

func (l *log) writeLocked(s string) {
	l.size += int64(len(s))
	if len(s) > l.max {
		s = s[len(s)-l.max:]
		l.data = l.data[:0]
	}
	if len(l.data)+len(s) > 2*l.max {
		l.data = append(l.data[:0], l.data[len(l.data)-(l.max-len(s)):]...)
	}
	l.data = append(l.data, s...)
}

// read returns up to most bytes from an offset on, or from the first byte that is kept. It returns
// whole runes, and whole lines where lines are short enough. from is the offset of the first byte
// that it returns, and size is how many bytes were printed in all.
func (l *log) read(offset int64, most int) (text string, from, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from = max(offset, l.size-int64(min(len(l.data), l.max)))
	if from >= l.size {
		return "", from, l.size
	}
	rest := l.data[int64(len(l.data))-(l.size-from):]
	for len(rest) > 0 && !utf8.RuneStart(rest[0]) { // an offset in the middle of a rune
		rest, from = rest[1:], from+1
	}
	return head(string(rest[:min(len(rest), most+utf8.UTFMax)]), most), from, l.size
}

// pageText returns a piece of a log with a note that says where to read on. The piece begins at
// from; the model has asked for offset.
func pageText(text string, offset, from, size int64) string {
	note := ""
	if from > offset {
		note = fmt.Sprintf("[bytes %d to %d are no longer kept]\n", offset, from)
	}
	next := from + int64(len(text))
	text = note + text
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	if next < size {
		return text + fmt.Sprintf("[%d of %d bytes; read on with offset %d]\n", next, size, next)
	}
	return text + fmt.Sprintf("[the end: %d bytes]\n", size)
}
