package tools

import (
	"bytes"
	"fmt"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// The byte order marks that some editors write at the beginning of a file.
var (
	markUTF8    = []byte("\xef\xbb\xbf")
	markUTF16BE = []byte("\xfe\xff")
	markUTF16LE = []byte("\xff\xfe")
	markUTF32LE = []byte("\xff\xfe\x00\x00")
)

// utf16Of returns the encoding of a text that begins with a byte order mark of UTF-16. For all
// other texts it returns nil. The decoder removes the mark, and the encoder adds it.
func utf16Of(begin []byte) encoding.Encoding {
	switch {
	case bytes.HasPrefix(begin, markUTF32LE):
		return nil
	case bytes.HasPrefix(begin, markUTF16LE):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case bytes.HasPrefix(begin, markUTF16BE):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	}
	return nil
}

// decode returns the text of a file's content, and a function that encodes a text as such content.
func decode(path string,
	content []byte) (text string, encode func(text string) ([]byte, error), err error) {
	utf16 := utf16Of(content)
	if utf16 == nil {
		return string(content), func(text string) ([]byte, error) { return []byte(text), nil }, nil
	}
	encode = func(text string) ([]byte, error) { return utf16.NewEncoder().Bytes([]byte(text)) }
	decoded, err := utf16.NewDecoder().Bytes(content)
	if err != nil {
		return "", nil, err
	}
	again, err := encode(string(decoded))
	if err != nil || !bytes.Equal(again, content) { // it has half a surrogate pair, or half a unit
		return "", nil, fmt.Errorf("%s is not valid UTF-16, so an edit would change more than "+
			"the text: change it with a program", path)
	}
	return string(decoded), encode, nil
}
