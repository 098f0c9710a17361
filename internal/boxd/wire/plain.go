package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Plain makes an SSH connection on raw without a handshake: no keys, no ciphers. Both ends call it.
// It is for the streams on which a machine's box was claimed. The login's own SSH protects them. A
// second handshake would prove nothing: a program that can change the streams can also change the
// claim and its answer. After a cut, the client speaks SSH, and knows boxd by the key of that
// answer.
//
// x/crypto knows such a connection as the client's end of OpenSSH's multiplexing by proxy
// (PROTOCOL.mux). After a greeting, both ends of that protocol behave alike. So both ends of raw
// are such clients. plainConn gives each the greeting of the other end, which says nothing.
func Plain(raw net.Conn) (ssh.Conn, <-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	return ssh.NewControlClientConn(&plainConn{Conn: raw, head: muxGreeting,
		unsent: len(muxGreeting), r: bufio.NewReaderSize(raw, plainBuffer)})
}

// muxGreeting is what the other end of a multiplexed connection answers: a MUX_MSG_HELLO of version
// 4, and a MUX_S_PROXY. The client's own greeting is as long.
var muxGreeting = []byte("\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x04" +
	"\x00\x00\x00\x08\x80\x00\x00\x0f\x00\x00\x00\x00")

const plainBuffer = 4 << 10

// A plainConn is the connection below a Plain one. x/crypto writes each packet by one Write, and
// may write several at a time.
type plainConn struct {
	net.Conn
	r    *bufio.Reader
	head []byte // what x/crypto is to read first: the greeting, or a packet's length
	rest int    // how many bytes of the packet follow

	mu     sync.Mutex
	unsent int // how many bytes of x/crypto's own greeting are still to come
}

// packetMin is the length of a packet without contents: its padding's length, and its type.
// x/crypto panics if a packet has no type.
const packetMin = 2

func (p *plainConn) Read(b []byte) (n int, err error) {
	if len(p.head) == 0 && p.rest == 0 {
		length := make([]byte, 4)
		if _, err := io.ReadFull(p.r, length); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(length)
		if size < packetMin {
			return 0, fmt.Errorf("a packet of %d bytes", size)
		}
		p.head, p.rest = length, int(size) // x/crypto refuses a packet that is too long
	}
	if len(p.head) > 0 {
		n = copy(b, p.head)
		p.head = p.head[n:]
		return n, nil
	}
	n, err = p.r.Read(b[:min(len(b), p.rest)])
	p.rest -= n
	return n, err
}

func (p *plainConn) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unsent > 0 {
		if p.unsent -= len(b); p.unsent < 0 {
			return 0, io.ErrShortWrite // this is not x/crypto's greeting
		}
		return len(b), nil
	}
	return p.Conn.Write(b)
}
