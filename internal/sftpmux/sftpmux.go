// Package sftpmux carries messages between the packets of an SFTP stream. Both ends must know of
// them. SFTP reserves the type of their packets for private use.
package sftpmux

import (
	"encoding/binary"
	"io"
	"sync"

	"github.com/sandshell/sandshell/internal/bounded"
)

// message is the type of a packet with a message (SSH_FXP_RESERVED_FOR_EXTENSIONS of
// draft-ietf-secsh-filexfer-13).
const message = 210

// MessageMax is the greatest length of a message in bytes.
const MessageMax = 2 << 20

// head is the length of a packet's head: its length and its type.
const head = 5

// A Reader reads a stream without its messages.
type Reader struct {
	r    io.Reader
	take func(message []byte) error
	// of the packet that is being read:
	head  [head]byte
	ready []byte // the part of head that Read has not returned
	left  int64  // how many bytes come after head
}

// NewReader returns a Reader of r. Read calls take with each message that it meets. If take returns
// an error, Read returns it too.
func NewReader(r io.Reader, take func(message []byte) error) *Reader {
	return &Reader{r: r, take: take}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 && r.left == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	if len(r.ready) > 0 {
		n := copy(p, r.ready)
		r.ready = r.ready[n:]
		return n, nil
	}
	n, err := r.r.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// next reads the head of a packet, and all of a message.
func (r *Reader) next() error {
	if _, err := io.ReadFull(r.r, r.head[:]); err != nil {
		return err
	}
	size := int64(binary.BigEndian.Uint32(r.head[:])) - 1
	if r.head[head-1] != message || size < 0 { // SFTP itself refuses an empty packet
		r.ready, r.left = r.head[:], max(size, 0)
		return nil
	}
	text, err := bounded.Exactly(r.r, size, "a message of the file server", MessageMax)
	if err != nil {
		return err
	}
	return r.take(text)
}

// A Writer writes a stream whose packets one goroutine at a time writes, and messages between them.
type Writer struct {
	io.WriteCloser
	writing sync.Mutex // held from the start of a packet to its end
	left    int64      // how many bytes of the packet are to be written
}

// Write implements io.Writer. A packet begins with a Write of at least its length.
func (w *Writer) Write(p []byte) (int, error) {
	if w.left == 0 {
		if len(p) < head-1 {
			return 0, io.ErrShortWrite
		}
		w.writing.Lock()
		w.left = head - 1 + int64(binary.BigEndian.Uint32(p))
	}
	n, err := w.WriteCloser.Write(p)
	if w.left -= int64(n); err != nil || w.left <= 0 {
		w.left = 0
		w.writing.Unlock()
	}
	return n, err
}

// Send writes a message. It may be called concurrently.
func (w *Writer) Send(text []byte) error {
	packet := make([]byte, head, head+len(text))
	binary.BigEndian.PutUint32(packet, uint32(len(text)+1))
	packet[head-1] = message
	w.writing.Lock()
	defer w.writing.Unlock()
	_, err := w.WriteCloser.Write(append(packet, text...))
	return err
}
