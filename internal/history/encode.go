package history

import (
	"encoding/binary"
	"errors"
	"slices"
)

// How a tree is written. A whole tree is its root, and each directory is followed by its children.
// A patch tells how a directory differs from the one at the Save before: it has the directory
// itself, and for each child that differs one of these operations.
const (
	opEnd    = 0
	opRemove = 1 // a name
	opSet    = 2 // an entry, with its children
	opPatch  = 3 // a patch of a directory that was there before
)

var errDamaged = errors.New("the store is damaged: another program has changed it. Begin a new " +
	"history")

// appendEntry appends an entry without its children.
func appendEntry(b []byte, e *entry) []byte {
	flags := byte(0)
	if e.racy {
		flags |= 1
	}
	if e.more != nil {
		flags |= 2
	}
	if e.asIs {
		flags |= 4
	}
	b = append(b, byte(e.kind), flags)
	b = appendString(b, e.name)
	for _, n := range []uint64{uint64(e.mode), uint64(e.uid), uint64(e.gid), uint64(e.nlink),
		uint64(e.size), e.dev, e.ino} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(e.mtime))
	b = binary.BigEndian.AppendUint64(b, uint64(e.ctime))
	if e.kind == file {
		b = binary.AppendUvarint(append(b, e.sum[:]...), uint64(e.at))
	}
	if m := e.more; m != nil {
		b = appendString(appendString(b, m.target), m.why)
		b = binary.AppendUvarint(b, uint64(len(m.extents)))
		for _, x := range m.extents {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(x.offset)), uint64(x.length))
		}
		b = binary.AppendUvarint(b, uint64(len(m.xattrs)))
		for _, x := range m.xattrs {
			b = appendString(appendString(b, x.name), x.value)
		}
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTree appends an entry with all that is below it.
func appendTree(b []byte, e *entry) []byte {
	b = appendEntry(b, e)
	if e.kind == directory {
		b = binary.AppendUvarint(b, uint64(len(e.children)))
		for _, c := range e.children {
			b = appendTree(b, c)
		}
	}
	return b
}

// appendPatch appends how the directory now differs from then.
func appendPatch(b []byte, now, then *entry) []byte {
	b = appendEntry(b, now)
	pairs(now, then, func(n, t *entry) error {
		switch {
		case n == nil:
			b = appendString(append(b, opRemove), t.name)
		case t == nil || n.kind != t.kind || n.kind != directory && !n.identical(t):
			b = appendTree(append(b, opSet), n)
		case n.kind == directory && n != t:
			b = appendPatch(append(b, opPatch), n, t)
		}
		return nil
	})
	return append(b, opEnd)
}

// A decoder reads what the functions above have appended. The store is a file that any program of
// the user can write, so nothing of it is believed. After an error all results are zero.
type decoder struct {
	b     string
	err   error
	depth int
}

func (d *decoder) fail() {
	d.b, d.err = "", errDamaged
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uint() (n uint64) {
	for shift := 0; shift < 64; shift += 7 {
		c := d.byte()
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
	}
	d.fail()
	return 0
}

func (d *decoder) int() int64 {
	n := int64(d.uint())
	if n < 0 {
		d.fail()
		return 0
	}
	return n
}

func (d *decoder) bytes(n uint64) string {
	if n > uint64(len(d.b)) {
		d.fail()
		return ""
	}
	s := d.b[:n]
	d.b = d.b[n:]
	return s
}

func (d *decoder) string() string { return d.bytes(d.uint()) }

func (d *decoder) time() int64 {
	s := d.bytes(8)
	if s == "" {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(s)))
}

// name reads a name that an entry may have.
func (d *decoder) name() string {
	s := d.string()
	if d.err == nil && !goodName(s) {
		d.fail()
	}
	return s
}

// goodName reports whether a directory may have an entry of that name. One with a slash would lead
// elsewhere.
func goodName(s string) bool {
	if s == "" || s == "." || s == ".." || len(s) > 255 {
		return false
	}
	for i := range len(s) {
		if s[i] == '/' || s[i] == 0 {
			return false
		}
	}
	return true
}

func (d *decoder) entry(isRoot bool) *entry {
	e := &entry{kind: kind(d.byte())}
	flags := d.byte()
	if isRoot {
		d.string()
	} else {
		e.name = d.name()
	}
	e.racy, e.asIs = flags&1 != 0, flags&4 != 0
	e.mode, e.uid, e.gid, e.nlink = uint32(d.uint())&0o7777, uint32(d.uint()), uint32(d.uint()),
		uint32(d.uint())
	e.size, e.dev, e.ino = d.int(), d.uint(), d.uint()
	e.mtime, e.ctime = d.time(), d.time()
	switch e.kind {
	case file:
		copy(e.sum[:], d.bytes(uint64(len(e.sum))))
		e.at = d.int()
	case directory, link, fifo, skipped:
	default:
		d.fail()
	}
	if flags&2 != 0 {
		e.more = d.more(e.size)
	}
	return e
}

func (d *decoder) more(size int64) *more {
	m := &more{target: d.string(), why: d.string()}
	end := int64(0)
	for range d.uint() {
		x := extent{d.int(), d.int()}
		if d.err != nil || x.offset < end || x.length > size-x.offset || x.offset > size {
			d.fail()
			return m
		}
		end = x.offset + x.length
		m.extents = append(m.extents, x)
	}
	for range d.uint() {
		x := xattr{d.string(), d.string()}
		if d.err != nil {
			return m
		}
		m.xattrs = append(m.xattrs, x)
	}
	return m
}

// tree reads what appendTree has appended.
func (d *decoder) tree(isRoot bool) *entry {
	e := d.entry(isRoot)
	if e.kind != directory {
		return e
	}
	if d.depth++; d.depth > maxDepth+1 {
		d.fail()
	}
	defer func() { d.depth-- }()
	n := d.uint()
	e.children = make([]*entry, 0, min(n, 1000)) // n is only a claim
	for range n {
		c := d.tree(false)
		if d.err != nil {
			return e
		}
		e.children = append(e.children, c)
		if k := len(e.children); k > 1 && e.children[k-2].name >= c.name {
			d.fail()
			return e
		}
	}
	return e
}

// patch applies what appendPatch has appended.
func (d *decoder) patch(then *entry, isRoot bool) *entry {
	now := d.entry(isRoot)
	if then == nil || then.kind != directory || now.kind != directory {
		d.fail()
		return now
	}
	if d.depth++; d.depth > maxDepth+1 {
		d.fail()
	}
	defer func() { d.depth-- }()
	old, last := then.children, ""
	before := func(name string) { // takes the children before that name, and drops that one
		if name <= last {
			d.fail()
			return
		}
		i := 0
		for i < len(old) && old[i].name < name {
			i++
		}
		now.children = append(now.children, old[:i]...)
		if old = old[i:]; len(old) > 0 && old[0].name == name {
			old = old[1:]
		}
		last = name
	}
	for d.err == nil {
		switch d.byte() {
		case opEnd:
			now.children = slices.Concat(now.children, old)
			return now
		case opRemove:
			before(d.name())
		case opSet:
			c := d.tree(false)
			before(c.name)
			now.children = append(now.children, c)
		case opPatch:
			rest := *d
			rest.byte()
			rest.byte()
			c := d.patch(then.child(rest.name()), false)
			before(c.name)
			now.children = append(now.children, c)
		default:
			d.fail()
		}
	}
	return now
}

// decodeTree returns a whole tree.
func decodeTree(text string) (*entry, error) {
	d := decoder{b: text}
	return d.root(d.tree(true))
}

// decodePatch returns a tree that a patch has made of another one, or of none.
func decodePatch(text string, then *entry) (*entry, error) {
	d := decoder{b: text}
	return d.root(d.patch(then, true))
}

// root checks what was read to the end.
func (d *decoder) root(e *entry) (*entry, error) {
	if d.err != nil || len(d.b) > 0 || e.kind != directory {
		return nil, errDamaged
	}
	return e, nil
}
