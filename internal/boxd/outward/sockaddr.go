//go:build linux

package outward

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// An inetAddress is an address of IPv4 or IPv6 in a program's memory: struct sockaddr_in or
// sockaddr_in6.
type inetAddress struct {
	bytes  []byte
	family uint16
	to     netip.AddrPort
}

// sizeInet6 is the least length that the kernel takes for an address of IPv6 (SIN6_LEN_RFC2133):
// the scope may be left out.
const sizeInet6 = unix.SizeofSockaddrInet6 - 4

// parseInet parses a copy of an address. ok is false if it is of another family, or too short.
func parseInet(bytes []byte) (a *inetAddress, ok bool) {
	if len(bytes) < unix.SizeofSockaddrInet4 {
		return nil, false
	}
	a = &inetAddress{bytes: bytes, family: binary.NativeEndian.Uint16(bytes)}
	var ip netip.Addr
	switch {
	case a.family == unix.AF_INET:
		ip = netip.AddrFrom4([4]byte(bytes[4:8]))
	case a.family == unix.AF_INET6 && len(bytes) >= sizeInet6:
		ip = netip.AddrFrom16([16]byte(bytes[8:24])).Unmap()
	default:
		return nil, false
	}
	a.to = netip.AddrPortFrom(ip, binary.BigEndian.Uint16(bytes[2:]))
	return a, true
}

// set changes the address to one of IPv4, in the same family.
func (a *inetAddress) set(to netip.AddrPort) {
	binary.BigEndian.PutUint16(a.bytes[2:], to.Port())
	if a.family == unix.AF_INET {
		ip := to.Addr().As4()
		copy(a.bytes[4:], ip[:])
	} else {
		ip := to.Addr().As16()
		copy(a.bytes[8:], ip[:])
	}
}

// changed returns the bytes that set changes, which begin at an offset. What follows them may be
// another thread's.
func (a *inetAddress) changed() (bytes []byte, offset int64) {
	if a.family == unix.AF_INET {
		return a.bytes[2:8], 2
	}
	return a.bytes[2:sizeInet6], 2
}

// sockaddr returns the address for a system call.
func (a *inetAddress) sockaddr() unix.Sockaddr {
	if a.family == unix.AF_INET {
		return &unix.SockaddrInet4{Port: int(binary.BigEndian.Uint16(a.bytes[2:])),
			Addr: [4]byte(a.bytes[4:8])}
	}
	return &unix.SockaddrInet6{Port: int(binary.BigEndian.Uint16(a.bytes[2:])),
		Addr: [16]byte(a.bytes[8:24])}
}
