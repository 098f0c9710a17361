// Package zmtp is a client for ZMTP 3.0, the protocol of ZeroMQ (https://rfc.zeromq.org/spec/23/),
// on a connection of the caller's. It is a DEALER or a SUB with the mechanism NULL. The peer is not
// trusted: a message takes no more memory than Limit.
package zmtp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// The kinds of sockets that a Conn can be.
const (
	Dealer = "DEALER"
	Sub    = "SUB"
)

// Limit is how many bytes of a message are kept, in at most frames frames: 5 MiB.
const (
	Limit  = 5 << 20
	frames = 64
)

// commandLimit is how many bytes a command may have.
const commandLimit = 64 << 10

const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// A Conn is a connection to one ZeroMQ socket. One goroutine may call Receive while others call
// Send.
type Conn struct {
	conn net.Conn
	r    *bufio.Reader

	mu sync.Mutex // held while sending
}

// A Message has one or more frames.
type Message struct {
	Frames [][]byte
	// Omitted counts the bytes that are not in Frames: those of the first frame that goes beyond
	// Limit, and of all frames after it.
	Omitted int64
}

// NewConn shakes hands with the socket at the other end of conn. A ROUTER there knows this one by
// identity; if identity is empty, the ROUTER chooses one. If NewConn fails, it closes conn. ctx
// governs the handshake only.
func NewConn(ctx context.Context, conn net.Conn, kind, identity string) (*Conn, error) {
	c := &Conn{conn: conn, r: newReader(conn)}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err := c.handshake(kind, identity)
	if !stop() {
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("zmtp: handshake: %w", err)
	}
	return c, nil
}

func (c *Conn) handshake(kind, identity string) error {
	var greeting [64]byte
	greeting[0], greeting[9] = 0xff, 0x7f
	greeting[10] = 3 // version 3.0, in which a subscription is a message
	copy(greeting[12:32], "NULL")
	ready := []byte("\x05READY")
	ready = appendProperty(ready, "Socket-Type", kind)
	if kind == Dealer {
		ready = appendProperty(ready, "Identity", identity)
	}
	if _, err := c.conn.Write(appendFrame(greeting[:], flagCommand, ready)); err != nil {
		return err
	}
	var theirs [64]byte
	if _, err := io.ReadFull(c.r, theirs[:]); err != nil {
		return noEOF(err)
	}
	switch mechanism := string(bytes.TrimRight(theirs[12:32], "\x00")); {
	case theirs[0] != 0xff || theirs[9]&1 == 0:
		return errors.New("the peer does not speak ZMTP")
	case theirs[10] < 3:
		return fmt.Errorf("the peer speaks ZMTP %d, which is too old", theirs[10])
	case mechanism != "NULL":
		return fmt.Errorf("the peer wants the mechanism %q", mechanism)
	}
	flags, size, err := c.header()
	if err != nil {
		return noEOF(err)
	}
	if flags&flagCommand == 0 {
		return errors.New("a message comes before READY")
	}
	command, err := c.command(size)
	if err != nil {
		return err
	}
	if name, rest := cutName(command); name != "READY" {
		return fmt.Errorf("the peer answers %s %q", name, rest)
	}
	return nil
}

func appendProperty(b []byte, name, value string) []byte {
	b = append(append(b, byte(len(name))), name...)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}

func appendFrame(b []byte, flags byte, body []byte) []byte {
	if len(body) > math.MaxUint8 {
		b = binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(len(body)))
	} else {
		b = append(b, flags, byte(len(body)))
	}
	return append(b, body...)
}

// cutName splits the body of a command into its name and the rest.
func cutName(b []byte) (name string, rest []byte) {
	if len(b) == 0 || int(b[0]) > len(b)-1 {
		return "", b
	}
	return string(b[1 : 1+b[0]]), b[1+b[0]:]
}

// Subscribe asks a PUB at the other end for messages whose first frame begins with prefix.
func (c *Conn) Subscribe(prefix string) error { return c.Send(append([]byte{1}, prefix...)) }

// Send sends a message.
func (c *Conn) Send(frames ...[]byte) error {
	size := 0
	for _, f := range frames {
		size += len(f) + 9
	}
	b := make([]byte, 0, size)
	for i, f := range frames {
		var flags byte
		if i < len(frames)-1 {
			flags = flagMore
		}
		b = appendFrame(b, flags, f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.conn.Write(b) // one write makes one SSH packet
	return err
}

// Receive returns the next message. After an error, no more messages follow. When the peer closes
// the connection between two messages, the error is io.EOF.
func (c *Conn) Receive() (*Message, error) {
	m := &Message{}
	kept := int64(0)
	for first := true; ; first = false {
		flags, size, err := c.header()
		if err != nil {
			if !first {
				err = noEOF(err)
			}
			return nil, err
		}
		if flags&flagCommand != 0 { // a later version of the protocol has such commands
			if _, err := c.command(size); err != nil {
				return nil, err
			}
			continue
		}
		if m.Omitted > 0 || kept+size > Limit || len(m.Frames) == frames {
			if _, err := io.CopyN(io.Discard, c.r, size); err != nil {
				return nil, noEOF(err)
			}
			m.Omitted += max(size, 1)
		} else {
			frame, err := c.body(size)
			if err != nil {
				return nil, err
			}
			kept += size
			m.Frames = append(m.Frames, frame)
		}
		if flags&flagMore == 0 {
			return m, nil
		}
	}
}

// header reads a frame's flags and size.
func (c *Conn) header() (flags byte, size int64, err error) {
	if flags, err = c.r.ReadByte(); err != nil {
		return 0, 0, err
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&flagCommand != 0 &&
		flags&flagMore != 0 {
		return 0, 0, fmt.Errorf("a frame has the flags %#x", flags)
	}
	if flags&flagLong == 0 {
		short, err := c.r.ReadByte()
		return flags, int64(short), noEOF(err)
	}
	var long [8]byte
	if _, err := io.ReadFull(c.r, long[:]); err != nil {
		return 0, 0, noEOF(err)
	}
	n := binary.BigEndian.Uint64(long[:])
	if n > math.MaxInt64/2 {
		return 0, 0, fmt.Errorf("a frame has %d bytes", n)
	}
	return flags, int64(n), nil
}

// body reads the body of a frame. It takes memory only for bytes that have arrived.
func (c *Conn) body(size int64) ([]byte, error) {
	return bounded.Exactly(c.r, size, "a frame", Limit)
}

func (c *Conn) command(size int64) ([]byte, error) {
	if size > commandLimit {
		return nil, fmt.Errorf("a command has %d bytes", size)
	}
	return c.body(size)
}

// noEOF returns err for the middle of a frame or a message, where the end of the connection is not
// expected.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close closes the connection. Receive and Send then fail.
func (c *Conn) Close() error { return c.conn.Close() }

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 64<<10) }
