package shellbox

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// A spool keeps a job's output in a temporary file of this machine. Where the system allows it, the file never has a name, so that
// nothing is left of it however this program ends.
type spool struct {
	mu   sync.Mutex
	f    *os.File
	size int64
	err  error // of the first write that failed; later output is lost
}

func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "sandshell-job-")
	if err != nil {
		return nil, fmt.Errorf("create the job's log: %w", err)
	}
	if runtime.GOOS != "windows" {
		os.Remove(f.Name())
	}
	return &spool{f: f}, nil
}

// Write appends p. It never fails, because an error would end the job's output; read returns the error instead.
func (s *spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		var n int
		n, s.err = s.f.WriteAt(p, s.size)
		s.size += int64(n)
	}
	return len(p), nil
}

func (s *spool) length() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// read returns at most max bytes from offset on.
func (s *spool) read(offset int64, max int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.f == nil:
		return nil, sandbox.ErrClosed
	case offset < 0 || offset > s.size:
		return nil, fmt.Errorf("offset %d is outside of the %d bytes there are", offset, s.size)
	case offset == s.size:
		return nil, s.err
	}
	p := make([]byte, min(int64(max), s.size-offset))
	if _, err := s.f.ReadAt(p, offset); err != nil && err != io.EOF {
		return nil, err
	}
	return p, nil
}

// text returns the output as a Result shows it, cleaned, and how many bytes are omitted in the middle.
func (s *spool) text() (string, int64, error) {
	kept := headtail.Buffer{Max: sandbox.DefaultMaxOutput}
	size, half := s.length(), kept.Max/2
	if size <= int64(kept.Max) {
		all, err := s.read(0, kept.Max)
		return clean(all), 0, err
	}
	head, err := s.read(0, half)
	if err != nil {
		return "", 0, err
	}
	tail, err := s.read(size-int64(half), half)
	if err != nil {
		return "", 0, err
	}
	kept.WriteString(clean(head))
	kept.Skip(size - 2*int64(half))
	kept.WriteString(clean(tail))
	text, omitted := kept.Text()
	return text, omitted, nil
}

func clean(raw []byte) string {
	var c terminal.Cleaner
	text := c.Append(nil, raw)
	c.Flush()
	return string(append(text, c.Line()...))
}

func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f != nil {
		s.f.Close()
		os.Remove(s.f.Name())
		s.f, s.err = nil, sandbox.ErrClosed
	}
}
