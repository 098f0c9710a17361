package tools

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/sandshell/sandshell/sandbox"
)

// A log keeps the last max bytes of the output of a shell's commands, in the form of their Results.
// Offsets count the whole output. The methods may be called from several goroutines.
type log struct {
	max int

	mu   sync.Mutex
	data []byte // at most 2*max bytes; beyond that the older half goes, so a byte moves only once
	size int64  // bytes of the whole output
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
	if r.Omitted > 0 { // data can have no gap
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

// read returns at most most bytes of the output that begin at offset or, if that part is not kept,
// at the first byte that is. It returns whole runes, and whole lines if they are short enough. from
// is the offset of the text, and size is that of the end of the output.
func (l *log) read(offset int64, most int) (text string, from, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from = max(offset, l.size-int64(min(len(l.data), l.max)))
	if from >= l.size {
		return "", from, l.size
	}
	rest := l.data[int64(len(l.data))-(l.size-from):]
	for len(rest) > 0 && !utf8.RuneStart(rest[0]) { // the offset is in the middle of a rune
		rest, from = rest[1:], from+1
	}
	return head(string(rest[:min(len(rest), most+utf8.UTFMax)]), most), from, l.size
}

// pageText returns a piece of a log with a note that says where to read on. offset is where the
// model wanted to begin, and from is where the piece begins.
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
