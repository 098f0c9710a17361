package sshconn

import (
	"net"
	"sync"
)

// A gatherer writes each large packet of x/crypto by one Write. x/crypto writes a packet through a
// bufio.Writer of 4 KiB: the first 4 KiB, then the rest. Each of both would wake the reader at the
// other end. If the connection is a channel of another SSH connection, each would be a packet
// there.
//
// A Write of 4 KiB may also be the end of a packet. So a goroutine writes it if nothing follows at
// once.
type gatherer struct {
	net.Conn
	mu      sync.Mutex
	held    []byte // what a goroutine is about to write; nil: nothing
	buf     []byte // the memory of held
	err     error  // of the last Write in a goroutine, or net.ErrClosed
	writing sync.WaitGroup
}

const (
	gatherPiece = 4 << 10 // the size of the buffer of bufio.NewWriter
	gatherMax   = 40 << 10
)

// Write implements io.Writer. Only one goroutine may call it at a time.
func (g *gatherer) Write(p []byte) (n int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return 0, g.err
	}
	if len(p) == gatherPiece && g.held == nil {
		g.held = append(g.buf[:0], p...)
		g.writing.Go(g.flush)
		return len(p), nil
	}
	before := len(g.held)
	if before > 0 && before+len(p) <= gatherMax {
		g.buf, g.held = append(g.held, p...), nil
		n, err = g.Conn.Write(g.buf)
		return max(n-before, 0), err
	}
	if g.flushLocked(); g.err != nil {
		return 0, g.err
	}
	return g.Conn.Write(p)
}

// flush writes what is held, unless Write has done so.
func (g *gatherer) flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flushLocked()
}

func (g *gatherer) flushLocked() {
	if g.held != nil {
		g.buf = g.held
		if _, err := g.Conn.Write(g.held); g.err == nil {
			g.err = err
		}
		g.held = nil
	}
}

// Close implements io.Closer. It writes nothing more.
func (g *gatherer) Close() error {
	err := g.Conn.Close() // a blocked Write returns
	g.mu.Lock()
	g.err = net.ErrClosed // from here on, no Write starts a goroutine
	g.mu.Unlock()
	g.writing.Wait()
	return err
}
