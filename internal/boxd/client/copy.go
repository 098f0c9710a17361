package client

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

var _ shellbox.Copier = (*Host)(nil)

// Unpack implements shellbox.Copier.
func (h *Host) Unpack(ctx context.Context, path string, pack func(io.Writer) error) error {
	small := &smallArchive{h: h, ctx: ctx, path: path}
	packErr := pack(small)
	if small.to == nil && packErr == nil {
		if err := small.send(); !isUnknownChannel(err) {
			return err
		}
		small.Flush() // an earlier boxd does not know the channel
	}
	c := small.to
	if c == nil {
		return cmp.Or(small.err, packErr)
	}
	defer c.close()
	c.CloseWrite()
	err := c.result(ctx)
	if packErr != nil && small.err == nil {
		// boxd's error only says that the archive is cut short.
		return packErr
	}
	return err
}

// A smallArchive is a writer that keeps an archive in memory while the archive is small. If it is
// still small at its end, one message brings it to boxd. Otherwise it goes to a channel.
type smallArchive struct {
	h    *Host
	ctx  context.Context
	path string
	kept []byte
	to   *copyChannel // nil while the archive is small
	err  error        // of the channel
}

func (s *smallArchive) Write(p []byte) (int, error) {
	if s.to == nil && s.err == nil {
		if len(s.kept)+len(p) <= wire.SmallArchive {
			s.kept = append(s.kept, p...)
			return len(p), nil
		}
		s.Flush()
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.to.Write(p)
	s.err = err
	return n, err
}

// Flush opens the channel and writes what was kept.
func (s *smallArchive) Flush() {
	if s.to, s.err = s.h.openCopy(s.ctx, wire.UnpackChannel, []byte(s.path)); s.err == nil {
		_, s.err = s.to.Write(s.kept)
	}
	s.kept = nil
}

// send sends a whole archive.
func (s *smallArchive) send() error {
	c, err := s.h.openCopy(s.ctx, wire.UnpackSmallChannel, ssh.Marshal(&wire.Small{
		Path: s.path, Archive: s.kept}))
	if err != nil {
		return err
	}
	defer c.close()
	return c.result(s.ctx)
}

func isUnknownChannel(err error) bool {
	var refused *ssh.OpenChannelError
	return errors.As(err, &refused) && refused.Reason == ssh.UnknownChannelType
}

// Pack implements shellbox.Copier.
func (h *Host) Pack(ctx context.Context, path string, unpack func(io.Reader) error) error {
	c, err := h.openCopy(ctx, wire.PackChannel, []byte(path))
	if err != nil {
		return err
	}
	defer c.close()
	unpackErr := unpack(c.Out)
	if unpackErr != nil && !errors.Is(unpackErr, io.ErrUnexpectedEOF) {
		select {
		case err := <-c.done: // if the archive is cut short, this is the reason
			if err != nil {
				return err
			}
		case <-time.After(10 * time.Millisecond):
		}
		if c.on.CheckEnded(ctx) {
			return sandbox.ErrCut
		}
		return unpackErr
	}
	if err := c.result(ctx); err != nil {
		return err
	}
	return unpackErr
}

// A copyChannel is a copy under way.
type copyChannel struct {
	*sshconn.Stream
	on   *sshconn.Conn
	done chan error // the result; closed if the channel ends
	free func() bool
}

// openCopy opens a channel. It does so again if the connection was cut meanwhile, unless the copy
// may have been made.
func (h *Host) openCopy(ctx context.Context, kind string, extra []byte) (*copyChannel, error) {
	for {
		conn, err := h.link.connection(ctx)
		if err != nil {
			return nil, h.explain(err)
		}
		ch, requests, err := conn.OpenChannel(ctx, kind, extra)
		if err != nil {
			if ctx.Err() == nil && cutOr(ctx, conn, err) == errCut {
				if kind == wire.UnpackSmallChannel {
					return nil, sandbox.ErrCut
				}
				continue
			}
			return nil, err
		}
		c := &copyChannel{Stream: sshconn.NewStream(ch, conn.Group), on: conn,
			done: make(chan error, 1)}
		c.Credit, c.Piece = sshconn.FirstCredit, sshconn.InnerPiece
		if !conn.Run(func() { c.readResult(requests) }) { // the connection has ended
			continue
		}
		c.free = context.AfterFunc(ctx, c.Stream.Close) // blocked reads and writes return
		return c, nil
	}
}

func (c *copyChannel) readResult(requests <-chan *ssh.Request) {
	defer close(c.done)
	var parts wire.Parts
	for r := range requests {
		if parts.Join(r) && r.Type == wire.DoneRequest {
			var err error
			if len(r.Payload) > 0 {
				err = failure(r.Payload)
			}
			select {
			case c.done <- err:
			default: // only the first result counts
			}
		}
	}
}

// undoLimit bounds the wait, after ctx has ended, until boxd has undone its part.
const undoLimit = 5 * time.Second

// result waits for the result of the copy.
func (c *copyChannel) result(ctx context.Context) error {
	select {
	case err, said := <-c.done:
		switch {
		case said:
			return err
		case ctx.Err() != nil:
			return ctxerr.Of(ctx)
		}
		if c.on.CheckEnded(ctx) {
			return sandbox.ErrCut
		}
		return errors.New("boxd ended the copy and did not say how it went")
	case <-c.on.Gone():
		return sandbox.ErrCut
	case <-ctx.Done():
		select { // boxd closes the channel when it has undone its part
		case <-c.done:
		case <-c.on.Gone():
		case <-time.After(undoLimit):
		}
		return ctxerr.Of(ctx)
	}
}

func (c *copyChannel) close() {
	c.free()
	c.Stream.Close()
}
