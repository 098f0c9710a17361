package e2b

import (
	"io"
	"sync"

	"github.com/sandshell/sandshell/internal/broadcast"
)

// maxStderr bounds the standard error of a program that waits to be read, in bytes.
const maxStderr = 64 << 10

// A stderr is the standard error of a program. Nobody need read it: what does not fit is dropped,
// so that the output, which comes in the same stream, goes on.
type stderr struct {
	mu      sync.Mutex
	changed broadcast.Signal
	waiting []byte
	end     error
}

func (s *stderr) add(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, p[:min(len(p), maxStderr-len(s.waiting))]...)
	s.changed.Send()
}

// finish makes Read return end when all is read. Only the first call counts.
func (s *stderr) finish(end error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = end
	}
	s.changed.Send()
}

// Read implements io.Reader.
func (s *stderr) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 && s.end == nil {
		changed := s.changed.Wait()
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
	if len(s.waiting) == 0 {
		return 0, s.end
	}
	n := copy(p, s.waiting)
	s.waiting = s.waiting[n:]
	return n, nil
}

var _ io.Reader = (*stderr)(nil)
