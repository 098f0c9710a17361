package harness

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// logMax bounds a task's log: an agent that prints for ever must not fill the disk.
const logMax = 16 << 20

// A taskLog is a file of at most logMax bytes, for writers of several goroutines.
type taskLog struct {
	mu      sync.Mutex
	file    *os.File
	written int64
	dropped int64
}

func createLog(path string) (*taskLog, error) {
	f, err := os.Create(path)
	return &taskLog{file: f}, err
}

// Write never fails: who writes is a command's output, which must not suffer from a full disk.
func (l *taskLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	take := p[:min(int64(len(p)), logMax-l.written)]
	n, _ := l.file.Write(take)
	l.written += int64(n)
	l.dropped += int64(len(p) - n)
	return len(p), nil
}

func (l *taskLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
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
	f, err := os.Create(path)
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
