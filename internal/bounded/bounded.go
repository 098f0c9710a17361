// Package bounded reads the output of a box. A box is hostile: a size is a claim, a line or a list
// may never end, and a program may have been replaced. So each read has a bound. A read that
// exceeds it returns a [*TooLargeError], which says what was too large and what the bound is.
//
// All code that reads a stream of a box into memory uses this package. TestReads, which lint runs,
// finds code that does not.
package bounded

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

// A TooLargeError says that a box has sent more than the reader's bound.
type TooLargeError struct {
	What string // what was read, such as "the answer of stat"
	Max  int64  // the bound, in bytes
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is larger than %s, which is the most that is read of it", e.What,
		bytesText(e.Max))
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// ReadAll reads r to its end, but at most most bytes. If there are more, it returns the first most
// bytes with a *TooLargeError.
func ReadAll(r io.Reader, what string, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if len(data) > most {
		return data[:most], &TooLargeError{What: what, Max: int64(most)}
	}
	return data, err
}

// Line reads a line of at most most bytes, and returns it without its "\n". If r ends within the
// line, it returns the part that was read and io.EOF.
func Line(r *bufio.Reader, what string, most int) (string, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		size := len(line) + len(piece)
		if err == nil {
			size--
		}
		if size > most {
			return string(append(line, piece...)[:most]),
				&TooLargeError{What: what, Max: int64(most)}
		}
		switch {
		case err == bufio.ErrBufferFull:
			line = append(line, piece...)
			continue
		case err != nil:
			return string(append(line, piece...)), err
		case line == nil:
			return string(piece[:len(piece)-1]), nil
		}
		return string(append(line, piece[:len(piece)-1]...)), nil
	}
}

// BareLine is Line for a reader without a buffer. It reads no byte after the line.
func BareLine(r io.Reader, what string, most int) (string, error) {
	var line []byte
	var b [1]byte
	for {
		switch _, err := io.ReadFull(r, b[:]); {
		case err != nil:
			return string(line), err
		case b[0] == '\n':
			return string(line), nil
		case len(line) == most:
			return string(line), &TooLargeError{What: what, Max: int64(most)}
		}
		line = append(line, b[0])
	}
}

// Size returns a size that a box claims, if it is neither negative nor larger than most.
func Size[N int | int32 | int64 | uint32 | uint64](claimed N, what string, most int) (int, error) {
	switch {
	case claimed < 0:
		return 0, fmt.Errorf("the size of %s is said to be %d", what, claimed)
	case uint64(claimed) > uint64(most):
		return 0, &TooLargeError{What: what, Max: int64(most)}
	}
	return int(claimed), nil
}

// claimPiece bounds the memory that is allocated for a claimed size before data has arrived.
const claimPiece = 1 << 20

// Exactly reads as many bytes as a box claims to send, at most most. It allocates memory as the
// bytes arrive. If r ends earlier, the error is io.ErrUnexpectedEOF.
func Exactly[N int | int32 | int64 | uint32 | uint64](r io.Reader, claimed N, what string,
	most int) ([]byte, error) {
	size, err := Size(claimed, what, most)
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, min(size, claimPiece))
	for len(data) < size {
		if len(data) == cap(data) {
			data = slices.Grow(data, min(size-len(data), len(data)))
		}
		n, err := io.ReadFull(r, data[len(data):min(cap(data), size)])
		data = data[:len(data)+n]
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return data, err
		}
	}
	return data, nil
}

// A List bounds the memory that the items of a list take.
type List struct {
	What string
	Max  int64 // bytes
	Cost int64 // the memory of an item beside its bytes; 0: itemCost

	taken int64
}

// itemCost is the memory of an item beside its bytes: about that of a struct, its pointer, and the
// unused room of a growing slice. For a string it is StringCost.
const (
	itemCost   = 160
	StringCost = 40
)

// Add counts an item of that many bytes. If the items take more than Max, the error is a
// *TooLargeError.
func (l *List) Add(size int) error {
	if l.taken += int64(size) + cmp.Or(l.Cost, itemCost); l.taken > l.Max {
		return &TooLargeError{What: l.What, Max: l.Max}
	}
	return nil
}

// A Buffer is a writer that keeps the output of a program in a box. Once that exceeds Max, its
// Writes fail with the error that Err returns. A Buffer may be used concurrently.
type Buffer struct {
	What string
	Max  int
	Full func(error) // if not nil, called once, when the output exceeds Max

	mu   sync.Mutex
	text bytes.Buffer
	err  error
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	n := min(len(p), b.Max-b.text.Len())
	b.text.Write(p[:n])
	if n < len(p) {
		b.err = &TooLargeError{What: b.What, Max: int64(b.Max)}
		if b.Full != nil {
			b.Full(b.err)
		}
	}
	return n, b.err
}

// String returns what has been written, up to Max.
func (b *Buffer) String() string { return string(b.Bytes()) }

// Bytes returns a copy of what has been written, up to Max.
func (b *Buffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text.Bytes())
}

// Err returns a *TooLargeError if the output has exceeded Max.
func (b *Buffer) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Capture returns a Buffer for the output of a program in a box, and a context for the program's
// Run. If the program prints more than most bytes, that context ends with a *TooLargeError as its
// cause: Run kills the program and returns that error. The caller must call stop at the end.
func Capture(ctx context.Context, what string,
	most int) (run context.Context, b *Buffer, stop func()) {
	ctx, cancel := ctxerr.WithCancel(ctx)
	return ctx, &Buffer{What: what, Max: most, Full: cancel}, func() { cancel(nil) }
}
