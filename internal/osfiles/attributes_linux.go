package osfiles

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi"
)

// userNamespace begins the names of the attributes that programs may use as they like.
const userNamespace = "user."

// valueMax is XATTR_SIZE_MAX, and XATTR_LIST_MAX too.
const valueMax = 64 << 10

// Attributes implements hostapi.Attributer. A file system that keeps no attributes may list none,
// without an error: only a question for one of them tells.
func (Client) Attributes(name string) (map[string][]byte, error) {
	attributes, err := attributesOf(name)
	if err == nil && len(attributes) == 0 {
		_, err := unix.Getxattr(name, userNamespace+"sandshell", nil)
		if errors.Is(err, unix.ENOTSUP) {
			return nil, explainAttributes(err)
		}
	}
	return attributes, err
}

func attributesOf(name string) (map[string][]byte, error) {
	names, err := readAttribute(func(b []byte) (int, error) { return unix.Listxattr(name, b) })
	if err != nil {
		return nil, explainAttributes(err)
	}
	attributes, size := map[string][]byte{}, 0
	for full := range strings.SplitSeq(string(names), "\x00") {
		key, ok := strings.CutPrefix(full, userNamespace)
		if !ok || key == "" {
			continue
		}
		value, err := readAttribute(func(b []byte) (int, error) {
			return unix.Getxattr(name, full, b)
		})
		if errors.Is(err, unix.ENODATA) { // it has just been removed
			continue
		}
		if err != nil {
			return nil, explainAttributes(err)
		}
		if size += hostapi.AttributeSize(key, value); size > hostapi.AttributesMax {
			return nil, fmt.Errorf("%w: the file's attributes have more than %d bytes", unix.E2BIG,
				hostapi.AttributesMax)
		}
		attributes[key] = value
	}
	return attributes, nil
}

// AttributesOf implements hostapi.Attributer.
func (Client) AttributesOf(names []string) (list []map[string][]byte, err error) {
	size := 0
	for _, name := range names {
		attributes, err := attributesOf(name)
		if err != nil || len(attributes) == 0 {
			attributes = nil
		} else {
			size += hostapi.AttributeSize("", nil)
		}
		for key, value := range attributes {
			size += hostapi.AttributeSize(key, value)
		}
		if size > hostapi.AttributesMax && len(list) > 0 {
			break
		}
		list = append(list, attributes)
	}
	return list, nil
}

// SetAttributes implements hostapi.Attributer. What it removes makes room for what it sets.
func (Client) SetAttributes(name string, attributes map[string][]byte) error {
	keys := slices.Sorted(maps.Keys(attributes))
	for _, key := range keys {
		if attributes[key] != nil {
			continue
		}
		err := uninterrupted(func() error { return unix.Removexattr(name, userNamespace+key) })
		if err != nil && !errors.Is(err, unix.ENODATA) {
			return explainAttributes(err)
		}
	}
	for _, key := range keys {
		value := attributes[key]
		if value == nil {
			continue
		}
		err := uninterrupted(func() error {
			return unix.Setxattr(name, userNamespace+key, value, 0)
		})
		if err != nil {
			return explainAttributes(err)
		}
	}
	return nil
}

func explainAttributes(err error) error {
	if errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("%w: the file system keeps no extended attributes", err)
	}
	return err
}

// readAttribute returns what read writes into its buffer: a value, or a list of names. Most are
// short.
func readAttribute(read func([]byte) (int, error)) ([]byte, error) {
	for size := 256; ; size = valueMax {
		data := make([]byte, size)
		var n int
		err := uninterrupted(func() (err error) {
			n, err = read(data)
			return err
		})
		if err == nil {
			return data[:n:n], nil
		}
		if !errors.Is(err, unix.ERANGE) || size == valueMax {
			return nil, err
		}
	}
}

// uninterrupted makes a system call again that a signal has interrupted, as may happen on FUSE.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// copyAttributes copies the ACL and the extended attributes of a file to another file, and ignores
// errors. It does not copy attributes that vouch for the content, such as capabilities and
// signatures.
func copyAttributes(from, to string) {
	list := make([]byte, valueMax)
	n, err := unix.Llistxattr(from, list)
	if err != nil {
		return
	}
	value := make([]byte, valueMax)
	for name := range strings.SplitSeq(string(list[:n]), "\x00") {
		if name == "" || strings.HasPrefix(name, "security.") && name != "security.selinux" {
			continue
		}
		if n, err := unix.Lgetxattr(from, name, value); err == nil {
			_ = unix.Lsetxattr(to, name, value[:n], 0)
		}
	}
}
