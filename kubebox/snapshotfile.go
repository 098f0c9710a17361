package kubebox

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sandshell/sandshell/internal/history"
	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// snapshotPrefix begins the names of the files of snapshots.
const snapshotPrefix = "sandshell-snapshot-"

// The file of a snapshot has a header, the state of the sessions, and then a pack of package
// history, all in the pieces of a pack.
const (
	pieceHeader = 'h' // a snapshotHeader, as JSON
	pieceState  = 's' // in several pieces
	statePart   = 1 << 19
)

// snapshotFormat changes whenever earlier versions could not read what is written.
const snapshotFormat = 1

type snapshotHeader struct {
	Format  int
	Image   string
	Created time.Time
	State   int // its length in bytes
}

// A snapshotWriter writes a new snapshot. Others see the file when it is complete.
type snapshotWriter struct {
	*bufio.Writer
	f    *os.File
	path string // of the complete file
}

func createSnapshot(dir string, h snapshotHeader) (*snapshotWriter, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, tempname.Prefix+"*") // with the permissions 0600
	if err != nil {
		return nil, err
	}
	w := &snapshotWriter{bufio.NewWriterSize(f, 1<<20), f, filepath.Join(dir,
		snapshotPrefix+h.Created.UTC().Format("20060102-150405-")+rand.Text()[:8])}
	h.Format = snapshotFormat
	text, err := json.Marshal(h)
	if err == nil {
		err = history.WritePiece(w, pieceHeader, text)
	}
	if err != nil {
		w.discard()
		return nil, err
	}
	return w, nil
}

func (w *snapshotWriter) writeState(state []byte) error {
	for part := range slices.Chunk(state, statePart) {
		if err := history.WritePiece(w, pieceState, part); err != nil {
			return err
		}
	}
	return nil
}

// finish gives the file its name, which it returns.
func (w *snapshotWriter) finish() (string, error) {
	err := w.Flush()
	if err == nil {
		err = w.f.Close()
	}
	if err == nil {
		err = os.Rename(w.f.Name(), w.path)
	}
	return w.path, err
}

func (w *snapshotWriter) discard() {
	w.f.Close()
	os.Remove(w.f.Name())
}

// A snapshotReader reads a snapshot.
type snapshotReader struct {
	*bufio.Reader
	snapshotHeader
	f *os.File
}

func openSnapshot(path string) (*snapshotReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &snapshotReader{Reader: bufio.NewReaderSize(f, 1<<20), f: f}
	kind, data, err := history.ReadPiece(r)
	if err == nil && kind == pieceHeader {
		err = json.Unmarshal(data, &r.snapshotHeader)
	}
	switch {
	case err != nil, kind != pieceHeader, r.State < 0, r.State > shellbox.MaxSaved:
		err = fmt.Errorf("%s is no snapshot of a KubeBox", path)
	case r.Format != snapshotFormat:
		err = fmt.Errorf("%s was made by another version: make it anew", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func (r *snapshotReader) Close() error { return r.f.Close() }

// state reads the state of the sessions. What follows is the pack.
func (r *snapshotReader) state() ([]byte, error) {
	var state bytes.Buffer
	for state.Len() < r.State {
		kind, data, err := history.ReadPiece(r)
		if err != nil {
			return nil, err
		}
		if kind != pieceState || len(data) > r.State-state.Len() {
			return nil, errors.New("the file is damaged")
		}
		state.Write(data)
	}
	return state.Bytes(), nil
}

// readSnapshot describes a snapshot.
func readSnapshot(path string) (*Snapshot, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	r, err := openSnapshot(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	info, err := r.f.Stat()
	if err != nil {
		return nil, err
	}
	return &Snapshot{ID: path, Created: r.Created, Image: r.Image, Size: info.Size()}, nil
}

var _ io.Reader = (*snapshotReader)(nil)
