package hostapi

import "context"

// An Attributer is a shellbox.FileClient that reaches the extended attributes of files. With any
// other, Attributes and SetAttributes of sandbox.Files return errors.ErrUnsupported.
type Attributer interface {
	// Attributes is that of sandbox.Files. If a file has more than AttributesMax, the error is
	// syscall.E2BIG.
	Attributes(name string) (map[string][]byte, error)

	// SetAttributes is that of sandbox.Files. Names and values are within the bounds that it has.
	SetAttributes(name string, attributes map[string][]byte) error

	// AttributesOf returns the attributes of the first of several files: of at least one, and of as
	// many as AttributesMax allows for all of them. nil stands for a file whose attributes cannot
	// be read. Names are absolute.
	AttributesOf(names []string) ([]map[string][]byte, error)
}

// An AttributesLister is a sandbox.Files that asks for the attributes of many files at once. All
// boxes of this module have one.
type AttributesLister interface {
	// AttributesOf is that of an Attributer.
	AttributesOf(ctx context.Context, names []string) ([]map[string][]byte, error)
}

// AttributesMax bounds the sum of AttributeSize of all attributes of a file, and of all files that
// an AttributesOf returns.
const AttributesMax = 1 << 20

// AttributeSize returns what an attribute takes in a message, at most. A file takes as much as an
// attribute without a name and a value.
func AttributeSize(name string, value []byte) int { return len(name) + len(value) + 16 }
