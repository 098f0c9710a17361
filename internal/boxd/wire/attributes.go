package wire

import (
	"errors"

	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/hostapi"
)

// An Attribute is an extended attribute of a file.
type Attribute struct {
	Name    string
	Removed bool // it has no value, and is to be removed
	Value   []byte
	Rest    []byte `ssh:"rest"` // the attributes that follow
}

// FileAttributes are the attributes of a file that has some.
type FileAttributes struct {
	Index      uint32 // of the file's path in the question
	Attributes []byte // one Attribute after the other
	Rest       []byte `ssh:"rest"` // the files that follow
}

// EncodeAttributes returns attributes as one Attribute after the other.
func EncodeAttributes(attributes map[string][]byte) (data []byte) {
	for name, value := range attributes {
		data = append(data, ssh.Marshal(&Attribute{Name: name, Removed: value == nil,
			Value: value})...)
	}
	return data
}

// attributesMemory is what hostapi.AttributesMax may take in memory, as a bounded.List counts it.
const attributesMemory = 12 * hostapi.AttributesMax

// DecodeAttributes decodes what EncodeAttributes has returned.
func DecodeAttributes(data []byte) (map[string][]byte, error) {
	attributes := map[string][]byte{}
	list := bounded.List{What: "the list of the file's attributes", Max: attributesMemory}
	for len(data) > 0 {
		var a Attribute
		if err := ssh.Unmarshal(data, &a); err != nil {
			return nil, err
		}
		if err := list.Add(len(a.Name) + len(a.Value)); err != nil {
			return nil, err
		}
		data = a.Rest
		if a.Name == "" {
			return nil, errors.New("an attribute of the file has no name")
		}
		var value []byte
		if !a.Removed {
			value = append([]byte{}, a.Value...)
		}
		attributes[a.Name] = value
	}
	return attributes, nil
}
