package history

import (
	"slices"
	"strings"
)

// A kind is what an entry is.
type kind byte

const (
	directory kind = 'd'
	file      kind = 'f'
	link      kind = 'l'
	fifo      kind = 'p'
	// skipped is what cannot be saved: a socket, a device, another file system, or what the user
	// may not read.
	skipped kind = 's'
)

// An entry is a file as it was at a Save. Entries are immutable once a scan has returned them, so
// trees share them.
type entry struct {
	name  string // without directories; "" for the root
	kind  kind
	asIs  bool   // it is older than the box, so the image has it too: its content was not read
	racy  bool   // it may have changed after it was read, with the same times: do not trust them
	mode  uint32 // the permissions, setuid, setgid and sticky
	uid   uint32
	gid   uint32
	nlink uint32
	size  int64
	mtime int64 // in nanoseconds since 1970
	ctime int64
	dev   uint64
	ino   uint64

	sum  [32]byte // of a file: SHA-256 of its extents
	at   int64    // where they are in the store's contents
	more *more    // nil for most

	children []*entry // of a directory, by name
}

// more is what few entries have.
type more struct {
	target  string   // of a link
	why     string   // an entry is skipped
	extents []extent // of a file with holes
	xattrs  []xattr  // by name
}

// An extent is a part of a file with data, between holes.
type extent struct{ offset, length int64 }

// An xattr is an extended attribute. An ACL is one, too.
type xattr struct{ name, value string }

var nothingMore more

func (e *entry) rest() *more {
	if e.more == nil {
		return &nothingMore
	}
	return e.more
}

// extents returns the parts of a file that the store has.
func (e *entry) extents() []extent {
	if x := e.rest().extents; x != nil {
		return x
	}
	if e.size == 0 {
		return nil
	}
	return []extent{{0, e.size}}
}

// stored returns how many bytes of the contents a file has.
func (e *entry) stored() (n int64) {
	for _, x := range e.extents() {
		n += x.length
	}
	return n
}

// sameContent reports whether two entries are of one kind and have the same content or target.
func (e *entry) sameContent(o *entry) bool {
	return e.kind == o.kind && (e.kind != file || e.size == o.size && e.sum == o.sum &&
		slices.Equal(e.extents(), o.extents())) &&
		e.rest().target == o.rest().target
}

// sameAttributes reports whether two entries have the same permissions, owner and extended
// attributes.
func (e *entry) sameAttributes(o *entry) bool {
	return e.mode == o.mode && e.uid == o.uid && e.gid == o.gid &&
		slices.Equal(e.rest().xattrs, o.rest().xattrs)
}

// same reports whether two entries look the same to a user, but for a directory's contents.
func (e *entry) same(o *entry) bool {
	return e == o || e.sameContent(o) && e.sameAttributes(o) && e.mtime == o.mtime
}

// identical reports whether two entries are equal in all that the store keeps, but for children.
func (e *entry) identical(o *entry) bool {
	return e == o || e.kind == o.kind && e.asIs == o.asIs &&
		e.racy == o.racy && e.nlink == o.nlink &&
		e.size == o.size && e.ctime == o.ctime && e.dev == o.dev && e.ino == o.ino &&
		e.at == o.at && e.same(o) && e.rest().why == o.rest().why
}

// child returns the child with that name, or nil.
func (e *entry) child(name string) *entry {
	if e == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(e.children, name, func(c *entry, name string) int {
		return strings.Compare(c.name, name)
	})
	if !ok {
		return nil
	}
	return e.children[i]
}

// pairs calls f for each name that either directory has, in order. a or b is nil if it lacks the
// name.
func pairs(now, then *entry, f func(a, b *entry) error) error {
	var a, b []*entry
	if now != nil {
		a = now.children
	}
	if then != nil {
		b = then.children
	}
	for len(a) > 0 || len(b) > 0 {
		var x, y *entry
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].name < b[0].name:
			x, a = a[0], a[1:]
		case len(a) == 0 || b[0].name < a[0].name:
			y, b = b[0], b[1:]
		default:
			x, y, a, b = a[0], b[0], a[1:], b[1:]
		}
		if err := f(x, y); err != nil {
			return err
		}
	}
	return nil
}

// join returns the path of a name in a directory; "" is the root.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// A leaders maps each path of a file that has several names in a tree to the first of them.
type leaders map[string]string

func (l leaders) of(path string) string {
	if first, ok := l[path]; ok {
		return first
	}
	return path
}

// leadersOf returns the leaders of a tree.
func leadersOf(root *entry) leaders {
	type id struct{ dev, ino uint64 }
	first := map[id]string{}
	all := leaders{}
	var walk func(e *entry, path string)
	walk = func(e *entry, path string) {
		for _, c := range e.children {
			if c.kind == directory {
				walk(c, join(path, c.name))
				continue
			}
			if c.nlink < 2 || c.kind == skipped {
				continue
			}
			p, k := join(path, c.name), id{c.dev, c.ino}
			if f, ok := first[k]; ok {
				all[p], all[f] = f, f
			} else {
				first[k] = p
			}
		}
	}
	walk(root, "")
	return all
}
