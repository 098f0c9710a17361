package history

import (
	"slices"

	"github.com/sandshell/sandshell/sandbox"
)

// changes returns how a tree differs from another.
func changes(now, then *entry) []sandbox.Change {
	d := &difference{now: leadersOf(now), then: leadersOf(then)}
	if !now.sameAttributes(then) {
		d.add(sandbox.FileAttributes, ".")
	}
	d.directory("", now, then)
	return d.found
}

type difference struct {
	now, then leaders
	found     []sandbox.Change
}

func (d *difference) add(op sandbox.FileOp, path string) {
	d.found = append(d.found, sandbox.Change{Op: op, Path: path})
}

// directory compares what is in two directories; one of them may be nil.
func (d *difference) directory(path string, now, then *entry) {
	pairs(now, then, func(a, b *entry) error {
		var c *entry
		if c = a; c == nil {
			c = b
		}
		p := join(path, c.name)
		switch {
		case a != nil && a.kind == skipped || b != nil && b.kind == skipped:
			return nil
		case a == nil:
			d.add(sandbox.FileRemoved, p)
		case b == nil:
			d.add(sandbox.FileCreated, p)
		case a.kind != b.kind:
			d.add(sandbox.FileWritten, p)
			d.directory(p, a, nil)
			d.directory(p, nil, b)
			return nil
		case a.kind == directory:
			if !a.sameAttributes(b) {
				d.add(sandbox.FileAttributes, p)
			}
		case !a.sameContent(b):
			d.add(sandbox.FileWritten, p)
		case !a.same(b) || d.now.of(p) != d.then.of(p):
			d.add(sandbox.FileAttributes, p)
		}
		if a != b && c.kind == directory {
			d.directory(p, a, b)
		}
		return nil
	})
}

// skips collects what has been left alone.
type skips struct {
	list  []sandbox.Skipped
	count int
	paths map[string]bool // the first of them
	size  int
}

// mostSkippedText bounds the texts of a list together, in bytes.
const mostSkippedText = 32 << 10

func (s *skips) add(path, reason string) {
	if s.paths[path] {
		return
	}
	if s.paths == nil {
		s.paths = map[string]bool{}
	}
	s.count++
	if s.size += len(path) + len(reason); s.count > 100*sandbox.HistorySkipped {
		return
	}
	s.paths[path] = true
	if len(s.list) < sandbox.HistorySkipped && s.size <= mostSkippedText {
		s.list = append(s.list, sandbox.Skipped{Path: path, Reason: reason})
	}
}

// measure counts what is in a tree.
func measure(root *entry) (p sandbox.Point) {
	var left skips
	var walk func(e *entry, path string)
	walk = func(e *entry, path string) {
		for _, c := range e.children {
			if c.kind == skipped {
				left.add(join(path, c.name), c.rest().why)
				continue
			}
			p.Entries++
			if c.kind == file {
				p.Bytes += c.size
			}
			if c.kind == directory {
				walk(c, join(path, c.name))
			}
		}
	}
	walk(root, "")
	p.Skipped, p.SkippedCount = slices.Clip(left.list), left.count
	return p
}

// hasRacy reports whether anything in a tree may have changed since it was read.
func hasRacy(e *entry) bool {
	return e.racy || slices.ContainsFunc(e.children, hasRacy)
}
