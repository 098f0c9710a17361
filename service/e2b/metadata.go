package e2b

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// The metadata of a file is in its extended attributes, as E2B's own server has it: programs in the
// box see the key "k" as the attribute "user.e2b.k".
const (
	metadataPrefix = "e2b."
	metadataHeader = "X-Metadata-"
	// maxKey is the longest name that Linux takes, without its prefix.
	maxKey = 255 - len("user."+metadataPrefix)
	// maxMetadata is what E2B allows for a file: as much as ext4 has room for.
	maxMetadata = 4096
)

// metadataOf returns the metadata that a request's headers ask for.
func metadataOf(h http.Header) (map[string]string, error) {
	metadata, size := map[string]string{}, 0
	for name, values := range h {
		key, ok := strings.CutPrefix(name, metadataHeader)
		if !ok || key == "" {
			continue
		}
		key, value := strings.ToLower(key), values[0]
		if len(key) > maxKey {
			return nil, e2b.Errorf(e2b.InvalidArgument, "%s: a key has %d bytes at most", name,
				maxKey)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return nil, e2b.Errorf(e2b.InvalidArgument, "%s: a value has printable ASCII "+
				"characters only", name)
		}
		size += len("user."+metadataPrefix) + len(key) + len(value)
		metadata[key] = value
	}
	if size > maxMetadata {
		return nil, e2b.Errorf(e2b.InvalidArgument, "the metadata has %d bytes, more than %d", size,
			maxMetadata)
	}
	return metadata, nil
}

// readMetadata returns the metadata of a file; nil if it has none, or it cannot be read.
func readMetadata(ctx context.Context, files sandbox.Files, name string) map[string]string {
	attributes, _ := files.Attributes(ctx, name)
	return metadataIn(attributes)
}

// metadataIn returns the metadata that is in a file's attributes. It leaves out what is not text,
// which programs in the box may have set: no message can carry it.
func metadataIn(attributes map[string][]byte) (metadata map[string]string) {
	for name, value := range attributes {
		key, ok := strings.CutPrefix(name, metadataPrefix)
		if !ok || key == "" || !utf8.ValidString(key) || !utf8.Valid(value) {
			continue
		}
		if metadata == nil {
			metadata = map[string]string{}
		}
		metadata[key] = string(value)
	}
	return metadata
}

// attributesBefore returns the attributes of a file that is to be written. If it is to get metadata
// and its file system, or that of its directory, keeps none, that is an error: nothing has been
// written by then.
func (c *call) attributesBefore(name string, isNew bool, metadata map[string]string) (
	map[string][]byte, error) {
	if isNew && len(metadata) == 0 {
		return nil, nil
	}
	if isNew {
		name = path.Dir(name)
	}
	attributes, err := c.box.Files().Attributes(c.r.Context(), name)
	switch {
	case errors.Is(err, errors.ErrUnsupported) && len(metadata) > 0:
		return nil, e2b.Errorf(e2b.Unimplemented, "%s…: no metadata of files can be kept there: "+
			"%v", metadataHeader, err)
	case isGone(err):
		return nil, err
	case isNew:
		return nil, nil
	}
	return attributes, nil // those that the user may not read are not kept either
}

// setMetadata replaces the metadata of a file that has been written, which had the attributes
// before. If lost is true, the file has lost the others, and they are set again.
func (c *call) setMetadata(name string, before map[string][]byte, lost bool,
	metadata map[string]string) error {
	set := map[string][]byte{}
	for name, value := range before {
		if strings.HasPrefix(name, metadataPrefix) {
			set[name] = nil
		} else if lost {
			set[name] = value
		}
	}
	for key, value := range metadata {
		set[metadataPrefix+key] = []byte(value)
	}
	if len(set) == 0 {
		return nil
	}
	return c.box.Files().SetAttributes(c.r.Context(), name, set)
}

// metadata reads the metadata of all entries.
func (l *lister) metadata() error {
	names := make([]string, len(l.entries))
	for i, e := range l.entries {
		names[i] = e.Path
	}
	for done := 0; done < len(names); {
		list, err := attributesOf(l.names.ctx, l.box.Files(), names[done:])
		if err != nil {
			if isGone(err) || l.names.ctx.Err() != nil {
				return err
			}
			return nil // the box has none
		}
		for _, attributes := range list {
			metadata := metadataIn(attributes)
			for key, value := range metadata {
				if err := l.size.Add(len(key) + len(value)); err != nil {
					return err
				}
			}
			l.entries[done].Metadata = metadata
			done++
		}
	}
	return nil
}

// attributesOf returns the attributes of the first of several files, of one or more.
func attributesOf(ctx context.Context, files sandbox.Files, names []string) (
	[]map[string][]byte, error) {
	names = names[:min(len(names), metadataAtOnce)]
	if many, ok := files.(hostapi.AttributesLister); ok {
		return many.AttributesOf(ctx, names)
	}
	attributes, err := files.Attributes(ctx, names[0])
	if isGone(err) {
		return nil, err
	}
	return []map[string][]byte{attributes}, ctx.Err()
}

// metadataAtOnce is how many files of a list are asked for their metadata at the same time.
const metadataAtOnce = 1000
