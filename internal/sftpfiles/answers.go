package sftpfiles

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/sandshell/sandshell/internal/bounded"
)

// packetMax is the longest packet that the SFTP client takes.
const packetMax = 256 << 10

// namePacket is SSH_FXP_NAME: a piece of a directory's list, a link's target, or a path.
const namePacket = 104

// answers is what the server says. The SFTP client reads a directory's list to its end, so the
// items are counted here, before the client gets them.
type answers struct {
	r      io.Reader
	ready  []byte // is read next,
	left   int    // and then so many bytes of r, up to the end of a packet
	header [5]byte

	mu      sync.Mutex
	list    *bounded.List // of the directory that is being read; nil: none is
	tooLong func(error)
}

// begin has the items of lists counted until end. tooLong is called if there are too many.
func (a *answers) begin(list *bounded.List, tooLong func(error)) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list, a.tooLong = list, tooLong
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.list, a.tooLong = nil, nil
	}
}

// Read implements io.Reader. Packets that are no lists are not copied.
func (a *answers) Read(p []byte) (int, error) {
	if len(a.ready) == 0 && a.left == 0 {
		if err := a.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.ready)
	a.ready = a.ready[n:]
	if n == len(p) || a.left == 0 {
		return n, nil
	}
	more, err := a.r.Read(p[n:min(len(p), n+a.left)])
	a.left -= more
	return n + more, err
}

// next reads the beginning of a packet, and all of a list.
func (a *answers) next() error {
	if _, err := io.ReadFull(a.r, a.header[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(a.header[:])
	if size == 0 || size > packetMax {
		return fmt.Errorf("a packet of %d bytes, where at most %d are read", size, packetMax)
	}
	a.ready, a.left = a.header[:], int(size)-1
	if a.header[4] != namePacket {
		return nil
	}
	packet := make([]byte, len(a.header)+a.left)
	copy(packet, a.header[:])
	if _, err := io.ReadFull(a.r, packet[len(a.header):]); err != nil {
		return err
	}
	a.ready, a.left = packet, 0
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.list != nil {
		if err := count(a.list, packet[len(a.header):]); err != nil {
			a.tooLong(err)
		}
	}
	return nil
}

// count takes the names in a packet into account, with their attributes. What is malformed is left
// to the SFTP client, which refuses it.
func count(list *bounded.List, packet []byte) error {
	number := func() uint32 {
		if len(packet) < 4 {
			packet = nil
			return 0
		}
		n := binary.BigEndian.Uint32(packet)
		packet = packet[4:]
		return n
	}
	skip := func(n uint32) { packet = packet[min(uint64(n), uint64(len(packet))):] }
	number() // the request's
	for entries := number(); entries > 0 && len(packet) > 0; entries-- {
		name := number()
		skip(name)
		skip(number()) // what ls -l would print
		flags := number()
		for _, attribute := range []struct{ flag, size uint32 }{{1, 8}, {2, 8}, {4, 4}, {8, 8}} {
			if flags&attribute.flag != 0 {
				skip(attribute.size)
			}
		}
		size := int(min(uint64(name), packetMax))
		if flags&(1<<31) != 0 { // extended attributes: pairs of strings
			for pairs := number(); pairs > 0 && len(packet) > 0; pairs-- {
				before := len(packet)
				skip(number())
				skip(number())
				size += pairCost + before - len(packet)
			}
		}
		if err := list.Add(size); err != nil {
			return err
		}
	}
	return nil
}

// pairCost is what a pair of strings takes beside its bytes.
const pairCost = 32
