// Package bounded reads what a box says. A box is hostile: a size is a claim, a line or a list may
// never end, and a program that we start may be another one. So each read has a bound. A read that
// meets it returns a [*TooLargeError], which says what was too large and what the bound is.
//
// Nothing else reads a stream of a box into memory: TestReads, which lint runs, finds what does.
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

// A TooLargeError says that a box has said more than is read of it.
type TooLargeError struct {
	What string // what was read, such as "the answer of stat"
	Max  int64  // how many bytes are read of it
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

// ReadAll reads until the end of r, but no more than most bytes. If there are more, it returns the
// first of them with the error.
func ReadAll(r io.Reader, what string, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if len(data) > most {
		return data[:most], &TooLargeError{What: what, Max: int64(most)}
	}
	return data, err
}

// Line reads a line of at most most bytes, and returns it without its end. If r ends within the
// line, it returns what there is of it, and io.EOF.
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

// BareLine is Line of a reader without a buffer. It reads nothing after the line.
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

// claimPiece is how much memory a claim gets before as much has come.
const claimPiece = 1 << 20

// Exactly reads as many bytes as a box claims to send, at most most. Memory grows with what comes.
// If r ends before, the error is io.ErrUnexpectedEOF.
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

// A List bounds the items of a list by the memory that they take.
type List struct {
	What string
	Max  int64 // bytes
	Cost int64 // of an item beside its bytes; 0: itemCost

	taken int64
}

// itemCost is what an item takes beside its bytes: about a struct, its pointer, and the room that a
// growing slice wastes. A string takes StringCost.
const (
	itemCost   = 160
	StringCost = 40
)

// Add takes an item of that many bytes into account.
func (l *List) Add(size int) error {
	if l.taken += int64(size) + cmp.Or(l.Cost, itemCost); l.taken > l.Max {
		return &TooLargeError{What: l.What, Max: l.Max}
	}
	return nil
}

// A Buffer is a writer that keeps what a program of a box prints. Once there is more than Max, its
// Writes fail with the error that Err returns. It may be used by several goroutines.
type Buffer struct {
	What string
	Max  int
	Full func(error) // is called once, when there is more than Max, if it is not nil

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

// Err returns a *TooLargeError if there was more than Max.
func (b *Buffer) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Capture returns a Buffer for what a program of a box prints, and a context for the program's Run.
// If the program prints more than most bytes, that context ends, with the error as its cause: so
// Run kills the program and returns that error. The caller calls stop at the end.
func Capture(ctx context.Context, what string,
	most int) (run context.Context, b *Buffer, stop func()) {
	ctx, cancel := ctxerr.WithCancel(ctx)
	return ctx, &Buffer{What: what, Max: most, Full: cancel}, func() { cancel(nil) }
}
