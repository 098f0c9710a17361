package archive

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
)

// An extent is a part of a file with data, between holes.
type extent struct{ offset, length int64 }

// maxExtents bounds the extents of a file. Holes after that many become zeros.
const maxExtents = 10_000

// sparseKey is the key of the record of a file with holes: the file's size, and the offset and
// length of each extent. The entry's content is that of the extents. (The records of GNU's tar
// would not do: package tar hides them, and returns the zeros of a hole one by one.)
const sparseKey = "SANDSHELL.sparse"

func layoutRecord(size int64, data []extent) []record {
	value := strconv.AppendInt(nil, size, 10)
	for _, e := range data {
		value = strconv.AppendInt(append(value, ','), e.offset, 10)
		value = strconv.AppendInt(append(value, ','), e.length, 10)
	}
	return []record{{sparseKey, string(value)}}
}

var errLayout = errors.New("the archive has a file with invalid holes")

// parseLayout parses the value of a layoutRecord. content is the length of the entry's content.
func parseLayout(value string, content int64) (size int64, data []extent, err error) {
	next := func() (n int64) {
		var field string
		field, value, _ = strings.Cut(value, ",")
		n, perr := strconv.ParseInt(field, 10, 64)
		if perr != nil || n < 0 {
			err = errLayout
		}
		return n
	}
	size = next()
	end := int64(0)
	for value != "" && err == nil {
		e := extent{next(), next()}
		if e.offset < end || e.offset > size || e.length > size-e.offset || e.length > content {
			return 0, nil, errLayout
		}
		end, content = e.offset+e.length, content-e.length
		data = append(data, e)
	}
	if err == nil && content != 0 {
		err = errLayout
	}
	return size, data, err
}

// A target is a file that fill writes.
type target interface {
	io.WriterAt
	Truncate(size int64) error
}

var zeros [bufferSize]byte

// fill writes the content of a file's extents. The rest, and zeros in the extents, become holes.
func fill(f target, r io.Reader, size int64, data []extent, buf []byte) error {
	written := int64(0) // the end of the file so far
	for _, e := range data {
		for at, end := e.offset, e.offset+e.length; at < end; {
			n, err := io.ReadFull(r, buf[:min(int64(len(buf)), end-at)])
			if err != nil {
				return err
			}
			if !bytes.Equal(buf[:n], zeros[:n]) {
				if _, err := f.WriteAt(buf[:n], at); err != nil {
					return err
				}
				written = at + int64(n)
			}
			at += int64(n)
		}
	}
	if written < size {
		return f.Truncate(size)
	}
	return nil
}

// copyData copies a file with its holes.
func copyData(out *os.File, in *os.File, size int64) error {
	buf := make([]byte, bufferSize)
	info, err := in.Stat()
	if err != nil {
		return err
	}
	data := dataExtents(in, info)
	if data == nil {
		return fill(out, in, size, []extent{{0, size}}, buf)
	}
	var parts []io.Reader
	for _, e := range data {
		parts = append(parts, io.NewSectionReader(in, e.offset, e.length))
	}
	return fill(out, io.MultiReader(parts...), size, data, buf)
}

// A record is one entry of an extended header.
type record struct{ key, value string }

// appendExtended appends a POSIX extended header, which is for the next entry. The tar of busybox
// skips such a header.
func appendExtended(b []byte, records []record) []byte {
	const block = 512
	start := len(b)
	b = append(b, make([]byte, block)...)
	for _, r := range records {
		size := len(" =\n") + len(r.key) + len(r.value)
		size += len(strconv.Itoa(size + len(strconv.Itoa(size)))) // it includes its own digits
		b = append(strconv.AppendInt(b, int64(size), 10), ' ')
		b = append(append(append(append(b, r.key...), '='), r.value...), '\n')
	}
	h := b[start : start+block]
	copy(h, "extended")
	copy(h[100:], "0000600\x000000000\x000000000\x00")
	putOctal(h[124:135], len(b)-start-block)
	putOctal(h[136:147], 0)
	copy(h[148:], "        x")
	copy(h[257:], "ustar\x0000")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	putOctal(h[148:154], sum)
	h[154] = 0
	return append(b, make([]byte, (block-(len(b)-start)%block)%block)...)
}

// putOctal fills a field of a header with an octal number.
func putOctal(field []byte, n int) {
	for i := len(field) - 1; i >= 0; i-- {
		field[i], n = byte('0'+n&7), n>>3
	}
}
