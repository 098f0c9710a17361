package output

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

// A Spool keeps a job's output: in memory while it is short, else in a temporary file of this
// machine. Where the system allows it, the file has no name, so that nothing is left of it however
// this program ends.
//
// The methods may be called from several goroutines.
type Spool struct {
	max int64 // it keeps the last max bytes; 0: all

	mu     sync.Mutex
	memory []byte // the output, while there is no file
	f      *os.File
	size   int64 // bytes written and skipped
	begin  int64 // the Spool has nothing before this offset, because of Skip
	err    error // of the first write that failed, or ErrClosed after Close; later output is lost
}

// NewSpool returns a Spool that keeps the last max bytes. If max is 0, it keeps all.
func NewSpool(max int64) *Spool { return &Spool{max: max} }

// inMemory is up to how many bytes a Spool keeps without a file.
const inMemory = 32 << 10

// Write appends p. It never fails, because an error would end the job's output. Read returns the
// error instead.
func (s *Spool) Write(p []byte) (int, error) {
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
func (s *Spool) toFile() error {
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

// place returns where the byte at offset is in the file, and how many of n bytes are there in one
// piece.
func (s *Spool) place(offset int64, n int) (at int64, piece int) {
	if s.max == 0 {
		return offset, n
	}
	at = offset % s.max
	return at, int(min(int64(n), s.max-at))
}

// firstLocked returns the offset of the first byte that is kept.
func (s *Spool) firstLocked() int64 {
	if s.max == 0 {
		return s.begin
	}
	return max(s.begin, s.size-s.max)
}

// Skip counts n bytes that the host no longer keeps. The Spool forgets what was before them.
func (s *Spool) Skip(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.memory = nil
	s.size += n
	s.begin = s.size
}

// Read returns at most max bytes from offset on, or from the first that is kept, and the offset
// behind them. After Close the error is sandbox.ErrClosed.
func (s *Spool) Read(offset int64, max int) (p []byte, next int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(s.err, sandbox.ErrClosed):
		return nil, offset, s.err
	case offset < 0 || offset > s.size:
		return nil, offset, &sandbox.OffsetError{Offset: offset, Size: s.size}
	case offset == s.size:
		return nil, offset, s.err
	}
	if first := s.firstLocked(); offset < first {
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

// Text returns the output as a Result shows it, cleaned for a terminal of that size.
func (s *Spool) Text(rows, cols int) (*Piece, error) {
	part, err := s.HeadTail()
	if err != nil {
		return nil, err
	}
	kept := part.clean(rows, cols, true)
	return newPiece(&kept), nil
}

// A Part is the raw output that a Result can show: its head and its tail.
type Part struct {
	before     int64 // bytes missing before the head
	head, tail []byte
	between    int64 // bytes missing between head and tail
}

// HeadTail returns the first and the last bytes of what is kept, as many as a Result can show.
func (s *Spool) HeadTail() (*Part, error) {
	s.mu.Lock()
	size, first := s.size, s.firstLocked()
	s.mu.Unlock()
	p := &Part{before: first}
	half := int64(sandbox.DefaultMaxOutput / 2)
	var err error
	if size-first <= 2*half {
		p.head, _, err = s.Read(first, int(2*half))
		return p, err
	}
	var next int64
	if p.head, next, err = s.Read(first, int(half)); err != nil {
		return nil, err
	}
	p.between = size - next - half
	p.tail, _, err = s.Read(max(next, size-half), int(half))
	return p, err
}

// clean returns the part cleaned for a terminal of that size. If whole is false, the lines at its
// end that can still be rewritten are left out.
func (p *Part) clean(rows, cols int, whole bool) headtail.Buffer {
	kept := headtail.Buffer{Max: sandbox.DefaultMaxOutput}
	write := func(raw []byte, whole bool) {
		var c terminal.Cleaner
		c.SetSize(rows, cols)
		text := c.Append(nil, raw)
		if whole {
			text = c.AppendOpen(c.Flush(text))
		}
		kept.Write(text)
	}
	kept.Skip(p.before)
	end := p.head
	if p.between > 0 {
		write(p.head, true)
		kept.Skip(p.between)
		end = p.tail
	}
	write(end, whole)
	return kept
}

// Closed reports whether Close has been called.
func (s *Spool) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Is(s.err, sandbox.ErrClosed)
}

// Close forgets the output.
func (s *Spool) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f != nil {
		s.f.Close()
		os.Remove(s.f.Name())
	}
	s.f, s.memory, s.err = nil, nil, sandbox.ErrClosed
}
