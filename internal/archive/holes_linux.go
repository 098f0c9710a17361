package archive

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// dataExtents returns the extents of a file that has holes. If the file has none, or if its file
// system does not know them, it returns nil, and the file's offset is 0.
func dataExtents(f *os.File, info fs.FileInfo) []extent {
	if stored, ok := allocated(info); !ok || stored >= info.Size() {
		return nil
	}
	data, size := []extent{}, info.Size()
	for at := int64(0); at < size; {
		start, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, syscall.ENXIO) || err == nil && start >= size {
			break
		}
		var end int64
		if err == nil {
			end, err = f.Seek(start, unix.SEEK_HOLE)
		}
		if err != nil || start == 0 && end >= size {
			f.Seek(0, io.SeekStart)
			return nil
		}
		if at = min(end, size); len(data) == maxExtents-1 {
			at = size
		}
		data = append(data, extent{start, at - start})
	}
	return data
}
