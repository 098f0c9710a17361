package harness

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/printable"
)

// logMax bounds a task's log: an agent that prints for ever must not fill the disk.
const logMax = 16 << 20

// A taskLog is a file of at most logMax bytes, for writers of several goroutines. What would change
// a terminal that shows the file is written as package printable has it.
type taskLog struct {
	mu      sync.Mutex
	file    *os.File
	part    []byte // of a character, or of an end of line, that has not come whole
	written int64
	dropped int64
}

func createLog(path string) (*taskLog, error) {
	f, err := createFile(path)
	return &taskLog{file: f}, err
}

// Write never fails: who writes is a command's output, which must not suffer from a full disk.
func (l *taskLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	raw := append(l.part, p...)
	whole := wholeCharacters(raw)
	l.put(raw[:whole])
	l.part = append([]byte(nil), raw[whole:]...)
	return len(p), nil
}

// put writes what there is room for.
func (l *taskLog) put(raw []byte) {
	if l.written == logMax {
		l.dropped += int64(len(raw))
		return
	}
	text := printable.Text(string(raw))
	n, _ := l.file.WriteString(text[:min(int64(len(text)), logMax-l.written)])
	l.written += int64(n)
	l.dropped += int64(len(text) - n)
}

// wholeCharacters is how much of raw is whole, whatever follows.
func wholeCharacters(raw []byte) int {
	n := len(raw)
	if n > 0 && raw[n-1] == '\r' {
		return n - 1
	}
	for i := n - 1; i >= max(n-utf8.UTFMax+1, 0); i-- {
		if utf8.RuneStart(raw[i]) {
			if !utf8.FullRune(raw[i:]) {
				return i
			}
			break
		}
	}
	return n
}

func (l *taskLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(l.part)
	if l.dropped > 0 {
		fmt.Fprintf(l.file, "\n--- %d bytes more are not in this log\n", l.dropped)
	}
	return l.file.Close()
}

// castMax bounds a recording.
const castMax = 64 << 20

// A boundedFile refuses what would make it larger than its bound.
type boundedFile struct {
	*os.File
	left int64
}

func createBounded(path string, bound int64) (*boundedFile, error) {
	f, err := createFile(path)
	return &boundedFile{f, bound}, err
}

func (f *boundedFile) Write(p []byte) (int, error) {
	if int64(len(p)) > f.left {
		f.left = 0 // nothing may follow what is missing
		return 0, errors.New("the recording is full")
	}
	n, err := f.File.Write(p)
	f.left -= int64(n)
	return n, err
}
