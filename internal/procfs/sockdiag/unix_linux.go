package sockdiag

import (
	"encoding/binary"
	"math"

	"golang.org/x/sys/unix"
)

// A Conn asks the kernel about sockets of this process's network namespace. The zero value is ready
// to use. A Conn must not be used concurrently.
type Conn struct {
	fd     int
	opened bool
	err    error
}

// Close releases what the Conn holds.
func (c *Conn) Close() {
	if c.opened && c.err == nil {
		unix.Close(c.fd)
	}
	*c = Conn{}
}

func (c *Conn) open() error {
	if !c.opened {
		c.opened = true
		c.fd, c.err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC,
			unix.NETLINK_INET_DIAG)
	}
	return c.err
}

// From include/uapi/linux/unix_diag.h of the kernel.
const (
	showPeer     = 4 // UDIAG_SHOW_PEER
	attrPeer     = 2 // UNIX_DIAG_PEER
	requestSize  = 24
	answerSize   = 16 // struct unix_diag_msg
	headerSize   = unix.SizeofNlMsghdr
	attrHeadSize = unix.SizeofNlAttr
	byFamily     = 20 // SOCK_DIAG_BY_FAMILY
)

// UnixPeer returns the inode of the socket that a unix socket is connected to, given its inode. ok
// is false if there is no such unix socket, if it is not connected, or if the kernel does not
// answer.
func (c *Conn) UnixPeer(inode uint64) (peer uint64, ok bool) {
	if inode == 0 || inode > math.MaxUint32 || c.open() != nil {
		return 0, false
	}
	order := binary.NativeEndian
	request := make([]byte, headerSize+requestSize)
	order.PutUint32(request, uint32(len(request)))
	order.PutUint16(request[4:], byFamily)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST)
	body := request[headerSize:] // struct unix_diag_req
	body[0] = unix.AF_UNIX
	order.PutUint32(body[4:], math.MaxUint32) // all states
	order.PutUint32(body[8:], uint32(inode))
	order.PutUint32(body[12:], showPeer)
	order.PutUint32(body[16:], math.MaxUint32) // any cookie
	order.PutUint32(body[20:], math.MaxUint32)
	// The kernel answers within the call.
	err := unix.Sendto(c.fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		return 0, false
	}
	answer := make([]byte, 1024)
	n, _, err := unix.Recvfrom(c.fd, answer, unix.MSG_DONTWAIT)
	if err != nil {
		return 0, false
	}
	return parsePeer(answer[:n], uint32(inode))
}

// parsePeer returns the peer's inode from the answer about a socket.
func parsePeer(answer []byte, inode uint32) (peer uint64, ok bool) {
	order := binary.NativeEndian
	if len(answer) < headerSize+answerSize || order.Uint16(answer[4:]) != byFamily ||
		order.Uint32(answer[headerSize+4:]) != inode {
		return 0, false
	}
	size := min(uint64(order.Uint32(answer)), uint64(len(answer)))
	for rest := answer[min(headerSize+answerSize, size):size]; len(rest) >= attrHeadSize; {
		size := int(order.Uint16(rest))
		if size < attrHeadSize || size > len(rest) {
			return 0, false
		}
		if order.Uint16(rest[2:]) == attrPeer && size >= attrHeadSize+4 {
			peer := order.Uint32(rest[attrHeadSize:])
			return uint64(peer), peer != 0
		}
		rest = rest[min(len(rest), (size+3)&^3):]
	}
	return 0, false
}
