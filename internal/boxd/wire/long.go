package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"syscall"

	"github.com/sandshell/sandshell/internal/bounded"
	"golang.org/x/crypto/ssh"
)

// MessageMax is the greatest length of the payload of a request or a reply in bytes. With its
// header a message stays far below 256 KiB, where x/crypto and OpenSSH end the connection.
const MessageMax = 128 << 10

// LongMax is the greatest length of a frame, or of a payload in parts, in bytes. Linux takes at
// most 6 MiB of arguments and environment (three quarters of _STK_LIM), of which the default stack
// allows 2 MiB, and base64 makes them longer.
const LongMax = 9 << 20

// WriteFrame writes the length of text, and text. If text is longer than LongMax, WriteFrame writes
// nothing and the error is syscall.E2BIG.
func WriteFrame(w io.Writer, text []byte) error {
	if len(text) > LongMax {
		return fmt.Errorf("a message of %d bytes: %w", len(text), syscall.E2BIG)
	}
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// ReadFrame reads what WriteFrame has written. It allocates memory only for bytes that have
// arrived.
func ReadFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(length[:]))
	if n > LongMax {
		return nil, syscall.E2BIG
	}
	return bounded.Exactly(r, n, "a message", LongMax)
}

// EncodeAnswer encodes the answer to a request on an AskChannel: ok is false if boxd refuses it.
func EncodeAnswer(ok bool, reply []byte) []byte {
	granted := byte(0)
	if ok {
		granted = 1
	}
	return append([]byte{granted}, reply...)
}

// DecodeAnswer decodes what EncodeAnswer has encoded.
func DecodeAnswer(text []byte) (ok bool, reply []byte, err error) {
	if len(text) == 0 {
		return false, nil, io.ErrUnexpectedEOF
	}
	return text[0] == 1, text[1:], nil
}

// Send makes a request on a channel and wants no reply. If the payload is longer than MessageMax,
// Send sends all but its end in PartRequests first. Only one goroutine at a time may call Send on a
// channel. If payload is longer than LongMax, the error is syscall.E2BIG.
func Send(ch ssh.Channel, name string, payload []byte) error {
	if len(payload) > LongMax {
		return fmt.Errorf("a message of %d bytes: %w", len(payload), syscall.E2BIG)
	}
	for len(payload) > MessageMax {
		if _, err := ch.SendRequest(PartRequest, false, payload[:MessageMax]); err != nil {
			return err
		}
		payload = payload[MessageMax:]
	}
	_, err := ch.SendRequest(name, false, payload)
	return err
}

// Parts joins the parts of requests that Send has made on a channel. The zero value is ready to
// use.
type Parts struct{ payload []byte }

// Call Join with each request on the channel. It reports whether r is complete; then r has the
// whole payload. Join drops what exceeds LongMax.
func (p *Parts) Join(r *ssh.Request) bool {
	if r.Type == PartRequest {
		p.payload = append(p.payload, r.Payload[:min(len(r.Payload), LongMax-len(p.payload))]...)
		return false
	}
	if len(p.payload) > 0 && joined[r.Type] {
		r.Payload = append(p.payload, r.Payload...)
		p.payload = nil
	}
	return true
}

// joined has the requests that are made with Send. Other requests may come between their parts.
var joined = map[string]bool{NoteRequest: true, FailedRequest: true, DoneRequest: true}
