package history

import (
	"encoding/binary"
	"io"

	"github.com/sandshell/sandshell/sandbox"
)

// A pack is what Image.Pack writes and Image.Unpack reads: how a directory differs from that of the
// image, as a tree of the whole directory, and the contents of the files that are not the image's.
// It consists of pieces. Each begins with a byte that says what it is, and its length in four
// bytes.
const (
	PieceContents = 'c' // the contents, in several pieces
	PieceTree     = 't' // then the tree, in several pieces
	PieceReport   = 'r' // then a Report, as JSON; it is the last
	PieceFailure  = 'f' // in place of any: the pack ends with an error
)

// pieceMax bounds the length of a piece, in bytes.
const pieceMax = 1 << 20

// A Report is what the owner of a box should know of a pack.
type Report struct {
	Entries      int   // of the directory
	Bytes        int64 // of the contents
	Skipped      []sandbox.Skipped
	SkippedCount int
	Mounts       []string // other file systems with anything in them, for people
}

// ReadPiece reads a piece of a pack.
func ReadPiece(r io.Reader) (kind byte, data []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > pieceMax {
		return 0, nil, errDamaged
	}
	data = make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return head[0], data, nil
}

// WritePiece writes a piece of a pack.
func WritePiece(w io.Writer, kind byte, data []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(data)))
	_, err := w.Write(append(head, data...))
	return err
}
