package localbox

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

var _ shellbox.Copier = (*host)(nil)

// Unpack implements shellbox.Copier. Both ends of the copy are in this process.
func (h *host) Unpack(ctx context.Context, path string, pack func(io.Writer) error) error {
	path, err := expandHome(path)
	if err != nil {
		return err
	}
	packing := func(_ context.Context, w io.Writer) error { return pack(w) }
	return throughPipe(ctx, packing, func(r io.Reader) error {
		return archive.Unpack(ctx, r, path, archive.Options{Trusted: true})
	})
}

// Pack implements shellbox.Copier.
func (h *host) Pack(ctx context.Context, path string, unpack func(io.Reader) error) error {
	path, err := expandHome(path)
	if err != nil {
		return err
	}
	var left *sandbox.CopyError
	err = throughPipe(ctx, func(ctx context.Context, w io.Writer) error {
		err := archive.Pack(ctx, w, path)
		if errors.As(err, &left) { // the archive is complete, without the files that err names
			return nil
		}
		return err
	}, unpack)
	if err == nil && left != nil {
		return left
	}
	return err
}

func expandHome(path string) (string, error) {
	if path == "" || path[0] != '~' {
		return path, nil
	}
	home, err := os.UserHomeDir()
	return archive.ExpandHome(path, home), err
}

// throughPipe runs pack and unpack at the ends of a pipe, and returns when both have returned. The
// first failure, or the end of ctx, closes the pipe. throughPipe returns the first error.
func throughPipe(ctx context.Context, pack func(context.Context, io.Writer) error,
	unpack func(io.Reader) error) error {
	ctx, fail := ctxerr.WithCancel(ctx)
	defer fail(nil)
	p := newPipe(ctx.Done())
	packed := make(chan error)
	go func() {
		err := pack(ctx, p)
		if err != nil {
			fail(err)
		} else {
			close(p.full)
		}
		packed <- err
	}()
	err := unpack(p)
	if err != nil {
		fail(err)
	} else {
		fail(io.ErrClosedPipe) // ends pack, even if unpack has not read everything
	}
	if perr := <-packed; err == nil && perr == nil {
		return nil
	}
	return ctxerr.Of(ctx)
}

// A pipe passes buffers from a writer to a reader. The writer may be pipePieces buffers ahead. With
// io.Pipe the two work in turns, and switching goroutines costs more than the copying.
type pipe struct {
	full, free chan []byte
	done       <-chan struct{} // ends reads and writes
	piece      []byte          // the buffer that is being read
	unread     []byte          // the end of piece that has not been read
}

const pipePieces, pipePiece = 8, 64 << 10

func newPipe(done <-chan struct{}) *pipe {
	p := &pipe{full: make(chan []byte, pipePieces), free: make(chan []byte, pipePieces), done: done}
	for range pipePieces {
		p.free <- nil // Write makes the buffer
	}
	return p
}

func (p *pipe) Write(b []byte) (n int, err error) {
	for n < len(b) {
		if isClosed(p.done) { // if several cases are ready, select chooses at random
			return n, io.ErrClosedPipe
		}
		select {
		case piece := <-p.free:
			if piece == nil {
				piece = make([]byte, pipePiece)
			}
			m := copy(piece[:pipePiece], b[n:])
			n += m
			p.full <- piece[:m]
		case <-p.done:
			return n, io.ErrClosedPipe
		}
	}
	return n, nil
}

func (p *pipe) Read(b []byte) (int, error) {
	if len(p.unread) == 0 {
		if p.piece != nil {
			p.free <- p.piece
			p.piece = nil
		}
		if isClosed(p.done) {
			return 0, io.ErrClosedPipe
		}
		select {
		case piece, ok := <-p.full:
			if !ok {
				return 0, io.EOF
			}
			p.piece, p.unread = piece, piece
		case <-p.done:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(b, p.unread)
	p.unread = p.unread[n:]
	return n, nil
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
