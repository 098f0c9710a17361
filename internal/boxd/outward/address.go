package outward

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// A block is a network of addresses that stand for numbers. The first and the last address stand
// for none: the last one of 127.0.0.0/8 is for broadcasts.
type block struct {
	netip.Prefix
	numbers uint32 // those that may be used are from 1 to one less
}

var (
	// nameBlock has the addresses that stand for names.
	nameBlock = newBlock("127.64.0.0/10")
	// wayBlock has the addresses that connections are turned to.
	wayBlock = newBlock("127.128.0.0/9")
)

func newBlock(text string) block {
	p := netip.MustParsePrefix(text)
	return block{p, 1<<(32-p.Bits()) - 1}
}

// address returns the address of a number.
func (b block) address(number uint32) netip.Addr {
	first := b.Addr().As4()
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(first[:])+number)
	return netip.AddrFrom4(a)
}

// number returns the number of an address. ok is false if it is not of the block.
func (b block) number(a netip.Addr) (n uint32, ok bool) {
	if !b.Contains(a) {
		return 0, false
	}
	first, bytes := b.Addr().As4(), a.As4()
	return binary.BigEndian.Uint32(bytes[:]) - binary.BigEndian.Uint32(first[:]), true
}

// mostKept bounds the names, and the ways, that are known at a time. A way is found again when the
// kernel has its connection, so there are more of them than connections that wait.
const mostKept = 8192

// names are the addresses that stand for names. They may be used concurrently.
type names struct {
	mu    sync.Mutex
	table *table[string, struct{}]
}

func newNames() *names {
	return &names{table: newTable[string, struct{}](mostKept, nameBlock.numbers)}
}

// address returns the address of a name.
func (n *names) address(name string) netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return nameBlock.address(n.table.number(name, struct{}{}))
}

// find returns the name of an address; "" if it has none.
func (n *names) find(a netip.Addr) string {
	number, ok := nameBlock.number(a)
	if !ok {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	name, _, _ := n.table.find(number)
	return name
}

// A way is where a process connects to.
type way struct {
	host    string // a name or an IP address
	port    uint16
	process int
}

// ways are the addresses that connections are turned to. They may be used concurrently.
type ways struct {
	mu    sync.Mutex
	table *table[way, string] // the values are names of programs
}

func newWays() *ways { return &ways{table: newTable[way, string](mostKept, wayBlock.numbers)} }

// address returns the address that stands for a way of a program.
func (w *ways) address(to way, program string) netip.Addr {
	w.mu.Lock()
	defer w.mu.Unlock()
	return wayBlock.address(w.table.number(to, program))
}

// find returns the way of an address, and the program's name.
func (w *ways) find(a netip.Addr) (to way, program string, ok bool) {
	number, ok := wayBlock.number(a)
	if !ok {
		return way{}, "", false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.table.find(number)
}
