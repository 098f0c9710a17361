//go:build !linux

package hosttest

import "net"

// reserve finds a port that is free, and that another program may take.
func reserve() (address string, release func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	return l.Addr().String(), func() {}, l.Close()
}
