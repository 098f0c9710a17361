package hostapi

// An Attributer is a shellbox.FileClient that reaches the extended attributes of files. With any
// other, Attributes and SetAttributes of sandbox.Files return errors.ErrUnsupported.
type Attributer interface {
	// Attributes is that of sandbox.Files. If a file has more than AttributesMax, the error is
	// syscall.E2BIG.
	Attributes(name string) (map[string][]byte, error)

	// SetAttributes is that of sandbox.Files. Names and values are within the bounds that it has.
	SetAttributes(name string, attributes map[string][]byte) error
}

// AttributesMax bounds the sum of AttributeSize of all attributes of a file.
const AttributesMax = 1 << 20

// AttributeSize returns what an attribute takes in a message, at most.
func AttributeSize(name string, value []byte) int { return len(name) + len(value) + 16 }
