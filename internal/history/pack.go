//go:build linux

package history

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// An Image is a directory of a box, "/" most likely, that began as a container image has it.
type Image struct {
	Dir    string
	Own    string    // a directory of the box's own in it, which is another file system
	Since  time.Time // when it was as the image has it
	Limits Limits
}

// Pack writes what has changed of a directory since all of it was as its image has it. Of the
// rest it writes names and attributes.
func (i Image) Pack(ctx context.Context, w io.Writer) error {
	fd, err := openDir(unix.AT_FDCWD, i.Dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", i.Dir, err)
	}
	defer unix.Close(fd)
	mounts, err := mountsBelow(i.Dir)
	if err != nil {
		return err
	}
	p := &packer{w: w}
	root, err := i.scan(ctx, p, mounts).run(fd, nil)
	if err == nil {
		err = p.pieces(PieceContents, p.pending)
	}
	if err == nil {
		err = p.pieces(PieceTree, appendTree(nil, root))
	}
	if err != nil {
		return err
	}
	lost := lostBy(root)
	report, err := json.Marshal(Report{Entries: measure(root).Entries, Bytes: p.end,
		Skipped: lost.list, SkippedCount: lost.count, Mounts: i.used(mounts)})
	if err == nil {
		err = WritePiece(p.w, PieceReport, report)
	}
	return err
}

// scan returns a scan that reads what is not the image's.
func (i Image) scan(ctx context.Context, to sink, mounts []mount) *scan {
	s := newScan(ctx, to, i.Limits.withDefaults(), true)
	s.since, s.mounts = i.Since.UnixNano(), map[string]bool{}
	for _, m := range mounts {
		s.mounts[m.path] = true
	}
	return s
}

// lostBy returns what a tree lacks and the image does not have either.
func lostBy(root *entry) (lost skips) {
	var walk func(e *entry, path string)
	walk = func(e *entry, path string) {
		for _, c := range e.children {
			if c.kind == skipped && !c.asIs && !isMount(c) {
				lost.add(join(path, c.name), c.rest().why)
			}
			walk(c, join(path, c.name))
		}
	}
	walk(root, "")
	return lost
}

// A packer is a sink that writes contents as they come.
type packer struct {
	w io.Writer

	mu      sync.Mutex
	pending []byte
	end     int64 // of all contents
	err     error
}

func (p *packer) pieces(kind byte, data []byte) error {
	for part := range slices.Chunk(data, pieceMax) {
		if err := WritePiece(p.w, kind, part); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) writeLocked(data []byte) error {
	p.end += int64(len(data))
	p.pending = append(p.pending, data...)
	for p.err == nil && len(p.pending) >= pieceMax {
		p.err = WritePiece(p.w, PieceContents, p.pending[:pieceMax])
		p.pending = append(p.pending[:0], p.pending[pieceMax:]...)
	}
	return p.err
}

func (p *packer) add(data []byte, _ [32]byte) (at int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.end
	return at, p.writeLocked(data)
}

// Write is for addStream, which holds mu.
func (p *packer) Write(data []byte) (int, error) { return len(data), p.writeLocked(data) }

func (p *packer) addStream(r io.Reader) (n int64, sum [32]byte, at int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.end
	h := sha256.New()
	n, err = io.CopyBuffer(io.MultiWriter(h, p), struct{ io.Reader }{r}, make([]byte, 256<<10))
	switch {
	case p.err != nil:
		err = p.err
	case err != nil:
		err = &readError{err}
	}
	h.Sum(sum[:0])
	return n, sum, at, err
}

// Unpack makes of the directory what a pack tells. temp makes a file for the contents. Unpack
// returns what it could not make so.
//
// It changes nothing outside of the directory, and nothing in other file systems that are mounted
// there.
func (i Image) Unpack(ctx context.Context, r io.Reader, temp func() (*os.File, error)) (
	left []sandbox.Skipped, count int, err error) {
	fd, err := openDir(unix.AT_FDCWD, i.Dir)
	if err != nil {
		return nil, 0, fmt.Errorf("open %s: %w", i.Dir, err)
	}
	defer unix.Close(fd)
	contents, err := temp()
	if err != nil {
		return nil, 0, err
	}
	defer contents.Close()
	want, size, err := readPack(r, contents)
	if err != nil {
		return nil, 0, fmt.Errorf("read the snapshot: %w", err)
	}
	mounts, err := mountsBelow(i.Dir)
	if err != nil {
		return nil, 0, err
	}
	scanned := func() (*entry, error) {
		return i.scan(ctx, &packer{w: io.Discard}, mounts).run(fd, nil)
	}
	now, err := scanned()
	if err != nil {
		return nil, 0, err
	}
	o := &operation{store: &store{contents: contents, end: size}, root: fd}
	b := newBack(ctx, o, now, want)
	b.inImage = true
	if err := b.run(); err != nil {
		return nil, 0, err
	}
	result, err := scanned()
	if err != nil {
		return nil, 0, err
	}
	for _, c := range changes(result, want) {
		b.left.add(c.Path, fmt.Sprintf("it is not as it was (%v)", c.Op))
	}
	return b.left.list, b.left.count, ctxerr.Of(ctx)
}

// readPack reads a pack. It writes the contents to a file.
func readPack(r io.Reader, contents io.Writer) (root *entry, size int64, err error) {
	var tree []byte
	for {
		kind, data, err := ReadPiece(r)
		if err != nil {
			return nil, 0, err
		}
		switch kind {
		case PieceContents:
			if size > math.MaxInt64-int64(len(data)) {
				return nil, 0, errDamaged
			}
			size += int64(len(data))
			if _, err := contents.Write(data); err != nil {
				return nil, 0, err
			}
		case PieceTree:
			if tree = append(tree, data...); len(tree) > mostTrees {
				return nil, 0, errDamaged
			}
		case PieceReport:
			root, err = decodeTree(string(tree))
			return root, size, err
		default:
			return nil, 0, errDamaged
		}
	}
}
