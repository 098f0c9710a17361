package shellbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// A spool keeps a job's output: in memory while it is short, else in a temporary file of this
// machine. Where the system allows it, the file never has a name, so that nothing is left of it
// however this program ends.
type spool struct {
	max int64 // bytes kept, the last ones; 0: all

	mu     sync.Mutex
	memory []byte // if there is no file
	f      *os.File
	size   int64 // all that was written or skipped
	begin  int64 // what is before this offset was skipped, or came before
	err    error // of the first write that failed, ErrClosed after close; later output is lost
}

// inMemory is up to how many bytes a spool takes no descriptor.
const inMemory = 32 << 10

// Write appends p. It never fails, because an error would end the job's output; read returns the
// error instead.
func (s *spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return len(p), nil
	}
	if s.f == nil && s.begin == 0 && len(s.memory)+len(p) <= inMemory &&
		(s.max == 0 || s.max >= inMemory) {
		s.memory = append(s.memory, p...)
		s.size += int64(len(p))
		return len(p), nil
	}
	if s.f == nil {
		s.err = s.toFile()
	}
	for rest := p; len(rest) > 0 && s.err == nil; {
		at, n := s.place(s.size, len(rest))
		n, s.err = s.f.WriteAt(rest[:n], at)
		rest, s.size = rest[n:], s.size+int64(n)
	}
	return len(p), nil
}

// toFile moves the output from memory to a file.
func (s *spool) toFile() error {
	f, err := os.CreateTemp("", "sandshell-job-")
	if err != nil {
		return fmt.Errorf("create the job's log: %w", err)
	}
	if runtime.GOOS != "windows" {
		os.Remove(f.Name())
	}
	s.f = f
	_, err = f.WriteAt(s.memory, 0)
	s.memory = nil
	return err
}

// place returns where the byte of that offset is in the file, and how many of n bytes are there in
// one piece.
func (s *spool) place(offset int64, n int) (at int64, piece int) {
	if s.max == 0 {
		return offset, n
	}
	at = offset % s.max
	return at, int(min(int64(n), s.max-at))
}

// first returns the offset of the first byte that is kept; s.mu is held.
func (s *spool) first() int64 {
	if s.max == 0 {
		return s.begin
	}
	return max(s.begin, s.size-s.max)
}

// skip counts so many bytes that do not come. With them goes what was before.
func (s *spool) skip(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.memory = nil
	s.size += n
	s.begin = s.size
}

// read returns at most max bytes from offset on, or from the first that is kept, and the offset
// behind them.
func (s *spool) read(offset int64, max int) (p []byte, next int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(s.err, sandbox.ErrClosed):
		return nil, offset, s.err
	case offset < 0 || offset > s.size:
		return nil, offset, fmt.Errorf("offset %d is outside of the %d bytes there are", offset,
			s.size)
	case offset == s.size:
		return nil, offset, s.err
	}
	if first := s.first(); offset < first {
		offset = first
	}
	n := min(int64(max), s.size-offset)
	if s.f == nil {
		return slices.Clone(s.memory[offset : offset+n]), offset + n, nil
	}
	p = make([]byte, n)
	for rest := p; len(rest) > 0; {
		at, piece := s.place(offset, len(rest))
		if _, err := s.f.ReadAt(rest[:piece], at); err != nil && err != io.EOF {
			return nil, offset, err
		}
		rest, offset = rest[piece:], offset+int64(piece)
	}
	return p, offset, nil
}

// text returns the output as a Result shows it, cleaned.
func (s *spool) text() (*piece, error) {
	s.mu.Lock()
	size, first := s.size, s.first()
	s.mu.Unlock()
	kept := headtail.Buffer{Max: sandbox.DefaultMaxOutput}
	kept.Skip(first)
	half := int64(kept.Max / 2)
	if size-first <= int64(kept.Max) {
		all, _, err := s.read(first, kept.Max)
		kept.WriteString(terminal.Text(all))
		return newPiece(&kept), err
	}
	head, next, err := s.read(first, int(half))
	if err != nil {
		return nil, err
	}
	tail, _, err := s.read(max(next, size-half), int(half))
	if err != nil {
		return nil, err
	}
	kept.WriteString(terminal.Text(head))
	kept.Skip(size - next - half)
	kept.WriteString(terminal.Text(tail))
	return newPiece(&kept), nil
}

// close forgets the output.
func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f != nil {
		s.f.Close()
		os.Remove(s.f.Name())
	}
	s.f, s.memory, s.err = nil, nil, sandbox.ErrClosed
}
