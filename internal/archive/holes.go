package archive

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

// holePiece is the size of the pieces in which holes are searched for.
const holePiece = 4 << 10

// searchExtents returns the extents of a file that has holes, by reading it: many file systems say
// that a file is stored in part, but not where. Those of FUSE do so, fuse-overlayfs of rootless
// engines among them. If it finds no holes, it returns nil. The file's offset is 0 before and
// after. buf is used. The error is that of ctx.
//
// If a file system compresses, it stores less of a file that has no holes. So the search ends when
// it has found more data than is stored.
func searchExtents(ctx context.Context, f *os.File, info fs.FileInfo, buf []byte) ([]extent,
	error) {
	stored, ok := allocated(info)
	if !ok || stored >= info.Size() {
		return nil, nil
	}
	data, err := findData(ctx, f, info.Size(), stored, buf)
	if ctx.Err() != nil {
		return nil, ctxerr.Of(ctx)
	}
	if _, failed := f.Seek(0, io.SeekStart); err != nil || failed != nil {
		return nil, nil // whoever reads it next finds the error too
	}
	return data, nil
}

// findData returns the extents of r with other bytes than zeros, or nil if they are all of it, or
// more than most. It ends with ctx.
func findData(ctx context.Context, r io.Reader, size, most int64, buf []byte) ([]extent, error) {
	data, found, holes := []extent{}, int64(0), false
	for at := int64(0); at < size && ctx.Err() == nil; {
		n, err := io.ReadFull(r, buf[:min(int64(len(buf)), size-at)])
		if err != nil {
			return nil, err
		}
		for rest := buf[:n]; len(rest) > 0; {
			piece := rest[:min(len(rest), holePiece)]
			rest = rest[len(piece):]
			length := int64(len(piece))
			last := len(data) - 1
			isZero := bytes.Equal(piece, zeros[:length])
			if !isZero {
				found += length
			}
			switch {
			case isZero && len(data) < maxExtents:
				holes = true
			case last >= 0 && data[last].offset+data[last].length == at:
				data[last].length += length
			default:
				data = append(data, extent{at, length})
			}
			at += length
		}
		if found > most {
			return nil, nil
		}
	}
	if !holes {
		return nil, nil
	}
	return data, nil
}
