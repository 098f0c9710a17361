package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/hostapi"
)

// Attributes implements sandbox.Files.
func (f *Files) Attributes(ctx context.Context, name string) (map[string][]byte, error) {
	return valueOf(ctx, f, call{op: "getxattr", name: name},
		func(_ context.Context, c *sharedClient, path string) (map[string][]byte, error) {
			of, err := f.attributer(c)
			if err != nil {
				return nil, err
			}
			return of.Attributes(path)
		})
}

// AttributesOf implements hostapi.AttributesLister.
func (f *Files) AttributesOf(ctx context.Context, names []string) ([]map[string][]byte, error) {
	if len(names) == 0 {
		return nil, nil
	}
	return valueOf(ctx, f, call{op: "getxattr", name: names[0]},
		func(_ context.Context, c *sharedClient, _ string) ([]map[string][]byte, error) {
			of, err := f.attributer(c)
			if err != nil {
				return nil, err
			}
			return of.AttributesOf(names)
		})
}

// SetAttributes implements sandbox.Files.
func (f *Files) SetAttributes(ctx context.Context, name string,
	attributes map[string][]byte) error {
	return f.do(ctx, call{op: "setxattr", name: name, changes: true},
		func(_ context.Context, c *sharedClient, path string) error {
			of, err := f.attributer(c)
			if err == nil {
				err = checkAttributes(attributes)
			}
			if err != nil {
				return err
			}
			return of.SetAttributes(path, attributes)
		})
}

func (f *Files) attributer(c *sharedClient) (hostapi.Attributer, error) {
	if of, ok := c.Client.(hostapi.Attributer); ok {
		return of, nil
	}
	return nil, fmt.Errorf("%w: %s cannot reach extended attributes of its files",
		errors.ErrUnsupported, f.box.Name)
}

const (
	attributeNameMax  = 255 - len("user.") // XATTR_NAME_MAX
	attributeValueMax = 64 << 10           // XATTR_SIZE_MAX
)

// checkAttributes returns an error if the kernel would take no such attribute.
func checkAttributes(attributes map[string][]byte) error {
	size := 0
	for name, value := range attributes {
		switch {
		case name == "" || len(name) > attributeNameMax || strings.ContainsRune(name, 0):
			return fmt.Errorf("%w: the name %q of an attribute: it has 1 to %d bytes, and no NUL",
				fs.ErrInvalid, name, attributeNameMax)
		case len(value) > attributeValueMax:
			return fmt.Errorf("%w: the attribute %q has %d bytes, more than %d", syscall.E2BIG,
				name, len(value), attributeValueMax)
		}
		size += hostapi.AttributeSize(name, value)
	}
	if size > hostapi.AttributesMax {
		return fmt.Errorf("%w: the attributes have more than %d bytes", syscall.E2BIG,
			hostapi.AttributesMax)
	}
	return nil
}
