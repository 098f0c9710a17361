package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"syscall"

	"github.com/sandshell/sandshell/internal/bounded"
	"golang.org/x/crypto/ssh"
)

// MessageMax is how many bytes of payload a request or a reply has at most. With its header it
// stays far below 256 KiB, where x/crypto and OpenSSH end the connection.
const MessageMax = 128 << 10

// LongMax is how many bytes a frame, or a payload in parts, has at most. Linux takes no more than 6
// MiB of arguments and environment (three quarters of _STK_LIM), the default stack allows 2 MiB of
// them, and base64 makes them longer.
const LongMax = 9 << 20

// WriteFrame writes a text, its length first. If it is longer than LongMax, nothing is written, and
// the error is syscall.E2BIG.
func WriteFrame(w io.Writer, text []byte) error {
	if len(text) > LongMax {
		return fmt.Errorf("a message of %d bytes: %w", len(text), syscall.E2BIG)
	}
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// ReadFrame reads what WriteFrame has written. It takes memory only for what has come.
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

// EncodeAnswer makes the reply to a request on an AskChannel, or its refusal.
func EncodeAnswer(ok bool, reply []byte) []byte {
	granted := byte(0)
	if ok {
		granted = 1
	}
	return append([]byte{granted}, reply...)
}

// DecodeAnswer returns what EncodeAnswer was given.
func DecodeAnswer(text []byte) (ok bool, reply []byte, err error) {
	if len(text) == 0 {
		return false, nil, io.ErrUnexpectedEOF
	}
	return text[0] == 1, text[1:], nil
}

// Send makes a request on a channel, which wants no reply. A long payload goes ahead in parts. Only
// one goroutine at a time may make requests in parts on a channel.
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

// Parts puts a channel's requests together that Send has made.
type Parts struct{ payload []byte }

// Join reports whether r is whole. If it is, r has all of the payload. What goes beyond LongMax is
// dropped.
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

// joined are the requests that Send makes. Others may come between their parts.
var joined = map[string]bool{NoteRequest: true, FailedRequest: true, DoneRequest: true}
