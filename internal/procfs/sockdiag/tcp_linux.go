package sockdiag

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
)

// maxTable bounds how much of a table of connections is read: that of more than 6,000 connections.
const maxTable = 1 << 20

// TCPPeers returns both ends of the established TCP connections within the network namespace of the
// process with that directory in /proc: by the inode of one end, that of the other. It leaves out
// connections beyond the first thousands.
func TCPPeers(dir string) map[uint64]uint64 {
	type connection struct{ local, remote string }
	inodes := map[connection]uint64{}
	for _, name := range []string{"/net/tcp", "/net/tcp6"} {
		f, err := os.Open(dir + name)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(io.LimitReader(f, maxTable)); lines.Scan(); {
			// number, local address, remote address, state, queues, timer, retransmissions, user,
			// timeout, inode, ...
			words := strings.Fields(lines.Text())
			const established = "01"
			if len(words) < 10 || words[3] != established {
				continue
			}
			if inode, err := strconv.ParseUint(words[9], 10, 64); err == nil && inode != 0 {
				inodes[connection{plainAddress(words[1]), plainAddress(words[2])}] = inode
			}
		}
		f.Close()
	}
	peers := map[uint64]uint64{}
	for c, inode := range inodes {
		if peer := inodes[connection{c.remote, c.local}]; peer != 0 {
			peers[inode] = peer
		}
	}
	return peers
}

// plainAddress returns the address as /proc/net/tcp has it, if /proc/net/tcp6 has an IPv4 address.
func plainAddress(address string) string {
	for _, mapped := range []string{"0000000000000000FFFF0000", "00000000000000000000FFFF"} {
		if plain, ok := strings.CutPrefix(address, mapped); ok {
			return plain
		}
	}
	return address
}
