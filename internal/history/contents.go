//go:build linux

package history

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
)

// indexSize is the size of an entry of the index: a SHA-256, and where the content begins.
const indexSize = sha256.Size + 8

// pendingMax is how much is written to the contents at once.
const pendingMax = 1 << 20

// loadIndexLocked reads the index.
func (s *store) loadIndexLocked() error {
	if s.known != nil {
		return nil
	}
	text := make([]byte, s.last().index)
	if _, err := s.index.ReadAt(text, 0); err != nil && len(text) > 0 {
		return fmt.Errorf("read the store: %w", err)
	}
	s.known = make(map[[32]byte]int64, len(text)/indexSize)
	for ; len(text) >= indexSize; text = text[indexSize:] {
		sum, at := indexEntry(text)
		s.known[sum] = at
	}
	delete(s.known, [32]byte{}) // of what was forgotten
	return nil
}

// indexEntry reads an entry of the index.
func indexEntry(b []byte) (sum [32]byte, at int64) {
	return [32]byte(b), int64(binary.BigEndian.Uint64(b[sha256.Size:]))
}

// noteLocked adds a content to the index.
func (s *store) noteLocked(sum [32]byte, at int64) {
	s.known[sum] = at
	s.added = binary.BigEndian.AppendUint64(append(s.added, sum[:]...), uint64(at))
}

// add adds a content, unless the store has it, and returns where it is.
func (s *store) add(data []byte, sum [32]byte) (at int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.loadIndexLocked(); err != nil {
		return 0, err
	}
	if at, ok := s.known[sum]; ok {
		return at, nil
	}
	if len(s.pending)+len(data) > pendingMax {
		if err := s.flushLocked(); err != nil {
			return 0, err
		}
	}
	at = s.end
	s.pending = append(s.pending, data...)
	s.end += int64(len(data))
	s.noteLocked(sum, at)
	return at, nil
}

// addStream is add for a content that is read piece by piece.
func (s *store) addStream(r io.Reader) (n int64, sum [32]byte, at int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.flushLocked(); err != nil {
		return 0, sum, 0, err
	}
	if err := s.loadIndexLocked(); err != nil {
		return 0, sum, 0, err
	}
	h := sha256.New()
	to := &storeWriter{w: io.NewOffsetWriter(s.contents, s.end)}
	n, err = io.CopyBuffer(io.MultiWriter(h, to), struct{ io.Reader }{r}, make([]byte, 256<<10))
	if to.err != nil {
		return n, sum, 0, fmt.Errorf("write the store: %w", to.err)
	}
	if err != nil {
		return n, sum, 0, &readError{err}
	}
	h.Sum(sum[:0])
	if at, ok := s.known[sum]; ok {
		return n, sum, at, nil
	}
	at = s.end
	s.end += n
	s.noteLocked(sum, at)
	return n, sum, at, nil
}

// A storeWriter remembers its error: it is the store's, and not that of the file that is read.
type storeWriter struct {
	w   io.Writer
	err error
}

func (w *storeWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.err = err
	return n, err
}

// A readError is the error of a file that is saved.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

func (s *store) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushLocked()
}

func (s *store) flushLocked() error {
	if len(s.pending) == 0 {
		return nil
	}
	if _, err := s.contents.WriteAt(s.pending, s.end-int64(len(s.pending))); err != nil {
		return fmt.Errorf("write the store: %w", err)
	}
	s.pending = s.pending[:0]
	return nil
}

// open returns the content of a file.
func (s *store) open(e *entry) (io.Reader, error) {
	if err := s.flush(); err != nil {
		return nil, err
	}
	return io.NewSectionReader(s.contents, e.at, e.stored()), nil
}
