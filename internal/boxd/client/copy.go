package client

import (
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
	c, err := h.openCopy(ctx, wire.UnpackChannel, path)
	if err != nil {
		return err
	}
	defer c.close()
	to := &faultyWriter{w: c.Stream}
	packErr := pack(to)
	c.CloseWrite()
	err = c.result(ctx)
	if packErr != nil && !to.failed { // boxd's error only says that the archive is cut short
		return packErr
	}
	return err
}

// Pack implements shellbox.Copier.
func (h *Host) Pack(ctx context.Context, path string, unpack func(io.Reader) error) error {
	c, err := h.openCopy(ctx, wire.PackChannel, path)
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

func (h *Host) openCopy(ctx context.Context, kind, path string) (*copyChannel, error) {
	for {
		conn, err := h.link.connection(ctx)
		if err != nil {
			return nil, h.explain(err)
		}
		ch, requests, err := conn.OpenChannel(ctx, kind, []byte(path))
		if err != nil {
			if ctx.Err() == nil && cutOr(ctx, conn, err) == errCut {
				continue
			}
			return nil, err
		}
		c := &copyChannel{Stream: sshconn.NewStream(ch, conn.Group), on: conn,
			done: make(chan error, 1)}
		c.Credit = sshconn.FirstCredit
		if !conn.Run(func() { c.readResult(requests) }) { // the connection has ended meanwhile
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
			default: // this is not the first result
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

// A faultyWriter remembers whether a write failed.
type faultyWriter struct {
	w      io.Writer
	failed bool
}

func (f *faultyWriter) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err != nil {
		f.failed = true
	}
	return n, err
}
