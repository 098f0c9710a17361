package client

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
)

// Attributes implements hostapi.Attributer.
func (f *files) Attributes(name string) (map[string][]byte, error) {
	a, err := f.ask(wire.FileQuestion{Op: wire.AttributesOp, Path: name})
	if err != nil {
		return nil, explainAttributes(name, err)
	}
	return attributes(a.Data)
}

// attributes decodes the attributes of a file.
func attributes(data []byte) (map[string][]byte, error) {
	attributes, err := wire.DecodeAttributes(data)
	if err != nil {
		return nil, err
	}
	for name, value := range attributes {
		if value == nil {
			return nil, fmt.Errorf("the file's attribute %q has no value", name)
		}
	}
	return attributes, nil
}

// SetAttributes implements hostapi.Attributer.
func (f *files) SetAttributes(name string, attributes map[string][]byte) error {
	_, err := f.ask(wire.FileQuestion{Op: wire.SetAttributesOp, Path: name,
		Data: wire.EncodeAttributes(attributes)})
	return explainAttributes(name, err)
}

// explainAttributes explains the error of an earlier boxd, which does not know the question.
func explainAttributes(name string, err error) error {
	switch {
	case errors.Is(err, hostapi.ErrLong) && len(name) > pathMax:
		return syscall.ENAMETOOLONG
	case errors.Is(err, hostapi.ErrLong), errors.Is(err, errors.ErrUnsupported) &&
		!errors.As(err, new(syscall.Errno)): // which a file system has
		return fmt.Errorf("%w: the box's boxd is too old for extended attributes of files",
			errors.ErrUnsupported)
	}
	return err
}

// AttributesOf implements hostapi.Attributer.
func (f *files) AttributesOf(names []string) ([]map[string][]byte, error) {
	var data []byte
	asked := 0
	for _, name := range names {
		if len(data)+len(name)+1 > wire.FileDataMax {
			break
		}
		data = append(append(data, name...), 0)
		asked++
	}
	if asked == 0 {
		return make([]map[string][]byte, min(1, len(names))), nil // no file has such a name
	}
	a, err := f.ask(wire.FileQuestion{Op: wire.AttributesOfOp, Data: data})
	if err != nil {
		return nil, explainAttributes("", err)
	}
	return attributesOf(a, asked)
}

// attributesOf decodes the attributes of files of which so many were asked for.
func attributesOf(a *wire.FileAnswer, asked int) ([]map[string][]byte, error) {
	if a.Size < 1 {
		return nil, errors.New("the file server tells of no file")
	}
	count, err := bounded.Size(a.Size, "the list of files", asked)
	if err != nil {
		return nil, err
	}
	list := make([]map[string][]byte, count)
	for data := a.Data; len(data) > 0; {
		var of wire.FileAttributes
		if err := ssh.Unmarshal(data, &of); err != nil {
			return nil, err
		}
		data = of.Rest
		if int64(of.Index) >= int64(count) || list[of.Index] != nil {
			return nil, fmt.Errorf("the file server tells of file %d in a list of %d, or twice",
				of.Index, count)
		}
		if list[of.Index], err = attributes(of.Attributes); err != nil {
			return nil, err
		}
	}
	return list, nil
}
