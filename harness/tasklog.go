package harness

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/printable"
)

// logMax bounds a task's log, in bytes: an agent that prints for ever must not fill the disk.
const logMax = 16 << 20

// A taskLog is a file of at most logMax bytes. It may be written to concurrently. Control
// characters are escaped as by package printable, so that a terminal can show the file.
type taskLog struct {
	mu      sync.Mutex
	file    *os.File
	part    []byte // the beginning of a character or of an end of line
	written int64  // bytes
	dropped int64  // bytes that had no room
}

func createLog(path string) (*taskLog, error) {
	f, err := createFile(path)
	return &taskLog{file: f}, err
}

// Write never fails: a command whose output is logged must not fail because the disk is full.
func (l *taskLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	raw := append(l.part, p...)
	whole := wholeCharacters(raw)
	l.writeLocked(raw[:whole])
	l.part = append([]byte(nil), raw[whole:]...)
	return len(p), nil
}

// writeLocked writes what there is room for, and counts the rest.
func (l *taskLog) writeLocked(raw []byte) {
	if l.written == logMax {
		l.dropped += int64(len(raw))
		return
	}
	text := printable.Text(string(raw))
	n, _ := l.file.WriteString(text[:min(int64(len(text)), logMax-l.written)])
	l.written += int64(n)
	l.dropped += int64(len(text) - n)
}

// wholeCharacters returns how many bytes of raw are whole characters, whatever follows. A "\r" at
// the end is not whole, because "\n" may follow.
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
	l.writeLocked(l.part)
	if l.dropped > 0 {
		fmt.Fprintf(l.file, "\n--- %d bytes more are not in this log\n", l.dropped)
	}
	return l.file.Close()
}

// castMax bounds a recording, in bytes.
const castMax = 64 << 20

// A boundedFile is a file of bounded size. A Write that does not fit fails, and so does any after
// it.
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
		f.left = 0 // nothing may follow the part that is missing
		return 0, errors.New("the recording is full")
	}
	n, err := f.File.Write(p)
	f.left -= int64(n)
	return n, err
}
