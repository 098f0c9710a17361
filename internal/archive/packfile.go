package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// packFile packs a regular file.
func (p *packer) packFile(ctx context.Context, at source, shown, name string) error {
	f, err := at.open()
	if err != nil {
		return p.skip(shown, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it was replaced while it was read")
	}
	if err != nil {
		return p.skip(shown, err)
	}
	id, linked := hardLinked(info)
	if first, ok := p.links[id]; linked && ok {
		return p.writeLink(info, shown, name, first)
	}
	var data []extent
	if p.sparse && info.Size() > bufferSize {
		if data = p.extents(f, info); data == nil {
			if data, err = searchExtents(ctx, f, info, p.buf); err != nil {
				return err
			}
		}
	}
	if data != nil {
		err = p.packSparse(f, info, data, shown, name)
	} else {
		err = p.packContent(f, info, shown, name)
	}
	if linked && err == nil {
		p.links[id] = name
	}
	return err
}

// packContent packs a file without holes. The size that the system reports may be wrong: that of a
// file of /proc is 0, that of a file of /sys is too large, and any file may change while it is
// read. So packContent reads the beginning, which is usually the whole file, before it writes the
// header.
func (p *packer) packContent(f *os.File, info fs.FileInfo, shown, name string) error {
	size, n := info.Size(), 0
	ended := false
	for !ended && n < len(p.buf) && (n == 0 || int64(n) != size) {
		m, err := f.Read(p.buf[n:])
		n += m
		if ended = err == io.EOF; err != nil && !ended {
			return p.skip(shown, err)
		}
	}
	head := p.buf[:n]
	switch {
	case ended:
		size = int64(n)
	case size == 0:
		rest, err := io.ReadAll(io.LimitReader(f, sizelessLimit-int64(n)+1))
		if err != nil {
			return p.skip(shown, err)
		}
		head = slices.Concat(head, rest)
		if len(head) > sizelessLimit {
			head = head[:sizelessLimit]
			why := fmt.Errorf("%w: its size is unknown, and its copy ends after %d bytes",
				syscall.EFBIG, sizelessLimit)
			if err := p.skip(shown, why); err != nil {
				return err
			}
		}
		size = int64(len(head))
	case size < int64(n): // it has grown
		size = int64(n)
	}
	if err := p.writeHeader(sized{info, size}, shown, name, "", nil); err != nil {
		return err
	}
	if _, err := p.tar.Write(head); err != nil {
		return err
	}
	return p.copyRange(f, int64(len(head)), size, shown)
}

// packSparse packs the data of a file that has holes.
func (p *packer) packSparse(f *os.File, info fs.FileInfo, data []extent, shown, name string) error {
	size := int64(0)
	for _, e := range data {
		size += e.length
	}
	h := sized{info, size}
	if err := p.writeHeader(h, shown, name, "", layoutRecord(info.Size(), data)); err != nil {
		return err
	}
	for _, e := range data {
		if _, err := f.Seek(e.offset, io.SeekStart); err != nil {
			return err
		}
		if err := p.copyRange(f, e.offset, e.offset+e.length, shown); err != nil {
			return err
		}
	}
	return nil
}

// copyRange packs a file's bytes from the offset from, where f reads next, to the offset to. In
// place of bytes that cannot be read it writes zeros, because the header has the size.
func (p *packer) copyRange(f *os.File, from, to int64, shown string) error {
	if to-from > bufferSize { // an empty bufio.Writer does not copy whole pieces
		if err := p.out.Flush(); err != nil {
			return err
		}
	}
	for from < to {
		piece := p.buf[:min(int64(len(p.buf)), to-from)]
		n, err := f.Read(piece)
		if err != nil {
			if err == io.EOF {
				err = errors.New("it became shorter while it was read")
			}
			err = fmt.Errorf("%w: the copy has zeros from byte %d on", bareError(err), from)
			if err := p.skip(shown, err); err != nil {
				return err
			}
			return p.writeZeros(to - from)
		}
		if _, err := p.tar.Write(piece[:n]); err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

func (p *packer) writeZeros(n int64) error {
	clear(p.buf)
	for n > 0 {
		m, err := p.tar.Write(p.buf[:min(int64(len(p.buf)), n)])
		if err != nil {
			return err
		}
		n -= int64(m)
	}
	return nil
}

// A sized FileInfo has another size than the system reports.
type sized struct {
	fs.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }
