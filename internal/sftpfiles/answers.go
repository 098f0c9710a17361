package sftpfiles

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/sandshell/sandshell/internal/bounded"
)

// packetMax is the longest packet that the SFTP client accepts.
const packetMax = 256 << 10

// namePacket is SSH_FXP_NAME: a part of a directory's list, a link's target, or a path.
const namePacket = 104

// A countingReader reads the server's output, and counts the items of directories' lists. The SFTP
// client does not: it reads a list to its end.
type countingReader struct {
	r            io.Reader
	ready        []byte // returned before more of r is read
	leftInPacket int    // how many bytes of the packet come after ready
	header       [5]byte

	mu      sync.Mutex
	list    *bounded.List // counts the directory that is being read; nil: none is being read
	tooLong func(error)
}

// countList makes Read count the items of lists, until end is called. If there are too many, Read
// calls tooLong.
func (a *countingReader) countList(list *bounded.List, tooLong func(error)) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list, a.tooLong = list, tooLong
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.list, a.tooLong = nil, nil
	}
}

// Read implements io.Reader. It copies only packets with names.
func (a *countingReader) Read(p []byte) (int, error) {
	if len(a.ready) == 0 && a.leftInPacket == 0 {
		if err := a.readHead(); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.ready)
	a.ready = a.ready[n:]
	if n == len(p) || a.leftInPacket == 0 {
		return n, nil
	}
	more, err := a.r.Read(p[n:min(len(p), n+a.leftInPacket)])
	a.leftInPacket -= more
	return n + more, err
}

// readHead reads the start of a packet, and all of a packet with names.
func (a *countingReader) readHead() error {
	if _, err := io.ReadFull(a.r, a.header[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(a.header[:])
	if size == 0 || size > packetMax {
		return fmt.Errorf("a packet of %d bytes, where at most %d are read", size, packetMax)
	}
	a.ready, a.leftInPacket = a.header[:], int(size)-1
	if a.header[4] != namePacket {
		return nil
	}
	packet := make([]byte, len(a.header)+a.leftInPacket)
	copy(packet, a.header[:])
	if _, err := io.ReadFull(a.r, packet[len(a.header):]); err != nil {
		return err
	}
	a.ready, a.leftInPacket = packet, 0
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.list != nil {
		if err := countNames(a.list, packet[len(a.header):]); err != nil {
			a.tooLong(err)
		}
	}
	return nil
}

// countNames adds the names in a packet, with their attributes, to list. It does not check the
// packet: the SFTP client refuses a malformed one.
func countNames(list *bounded.List, packet []byte) error {
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

// pairCost is the memory of a pair of strings beside its bytes.
const pairCost = 32
