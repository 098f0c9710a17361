package sockdiag

import (
	"encoding/binary"
	"math"
	"net/netip"

	"golang.org/x/sys/unix"
)

// From include/uapi/linux/inet_diag.h of the kernel.
const (
	inetRequestSize = 56 // struct inet_diag_req_v2
	inetAnswerSize  = 72 // struct inet_diag_msg
	inetInode       = 68
)

// TCPClosed reports whether no process has the end of a TCP connection of IPv4 whose own address is
// local, or whether there is no such connection. It returns false if the kernel does not answer.
func (c *Conn) TCPClosed(local, remote netip.AddrPort) bool {
	if c.open() != nil {
		return false
	}
	order := binary.NativeEndian
	request := make([]byte, headerSize+inetRequestSize)
	order.PutUint32(request, uint32(len(request)))
	order.PutUint16(request[4:], byFamily)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST)
	body := request[headerSize:]
	body[0], body[1] = unix.AF_INET, unix.IPPROTO_TCP
	order.PutUint32(body[4:], math.MaxUint32) // all states
	id := body[8:]                            // struct inet_diag_sockid
	binary.BigEndian.PutUint16(id, local.Port())
	binary.BigEndian.PutUint16(id[2:], remote.Port())
	from, to := local.Addr().Unmap().As4(), remote.Addr().Unmap().As4()
	copy(id[4:], from[:])
	copy(id[20:], to[:])
	order.PutUint32(id[40:], math.MaxUint32) // any cookie
	order.PutUint32(id[44:], math.MaxUint32)
	// The kernel answers within the call.
	err := unix.Sendto(c.fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		return false
	}
	answer := make([]byte, 1024)
	n, _, err := unix.Recvfrom(c.fd, answer, unix.MSG_DONTWAIT)
	if err != nil || n < headerSize+4 {
		return false
	}
	if order.Uint16(answer[4:]) == unix.NLMSG_ERROR {
		return -int32(order.Uint32(answer[headerSize:])) == int32(unix.ENOENT)
	}
	return n >= headerSize+inetAnswerSize && order.Uint16(answer[4:]) == byFamily &&
		order.Uint32(answer[headerSize+inetInode:]) == 0
}
