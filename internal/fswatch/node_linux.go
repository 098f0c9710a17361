package fswatch

// below returns the path of an entry of the directory, from the top of its tree; "": its own.
func (n *node) below(name string) string {
	for ; n.parent != nil; n = n.parent {
		if name != "" {
			name = "/" + name
		}
		name = n.name + name
	}
	return name
}

// top returns the directory at the top of the tree that this one is in.
func (n *node) top() *node {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

// isBelow reports whether n is the directory above, or in it.
func (n *node) isBelow(above *node) bool {
	for ; n != nil; n = n.parent {
		if n == above {
			return true
		}
	}
	return false
}

// attach makes child an entry of the directory.
func (n *node) attach(name string, child *node) {
	if n.children == nil {
		n.children = map[string]*node{}
	}
	n.children[name] = child
	child.name, child.parent = name, n
}

// detach removes the entry of that name, and returns its directory; nil if there is none.
func (n *node) detach(name string) *node {
	child := n.children[name]
	if child != nil {
		delete(n.children, name)
		child.parent = nil
	}
	return child
}

// drop removes a child, if it is one. n may be nil.
func (n *node) drop(child *node) {
	if n != nil && n.children[child.name] == child {
		n.detach(child.name)
	}
}
