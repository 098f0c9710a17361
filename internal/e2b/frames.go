package e2b

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sandshell/sandshell/internal/bounded"
)

// MaxMessage bounds the messages that are read, in bytes.
const MaxMessage = 16 << 20

// The flags of a frame.
const (
	flagCompressed = 1
	flagEnd        = 2
)

// AppendFrame appends a frame of the Connect protocol that holds a message.
func AppendFrame(b []byte, message []byte) []byte { return appendFrame(b, 0, message) }

func appendFrame(b []byte, flag byte, message []byte) []byte {
	b = append(b, flag)
	b = binary.BigEndian.AppendUint32(b, uint32(len(message)))
	return append(b, message...)
}

// end is the last frame's message.
type end struct {
	Error *Error `json:"error,omitempty"`
}

// AppendEnd appends the last frame of a stream: with an error, or with none if err is nil.
func AppendEnd(b []byte, err error) []byte {
	var e end
	if err != nil {
		e.Error = ErrorOf(err)
	}
	text, _ := json.Marshal(e) // it has strings only
	return appendFrame(b, flagEnd, text)
}

// ReadFrame reads a message. At the stream's last frame it returns that frame's error, or io.EOF if
// it has none. A stream that ends without such a frame is io.ErrUnexpectedEOF.
func ReadFrame(r io.Reader) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	flag := head[0]
	if flag&^(flagCompressed|flagEnd) != 0 {
		return nil, Errorf(InvalidArgument, "the stream has no frame of the Connect protocol, but "+
			"%.5q: a proxy may have answered in place of the sandbox", head)
	}
	message, err := bounded.Exactly(r, binary.BigEndian.Uint32(head[1:]), "a message", MaxMessage)
	if err != nil {
		if errors.As(err, new(*bounded.TooLargeError)) {
			err = Errorf(ResourceExhausted, "%v", err)
		}
		return nil, err
	}
	if flag&flagCompressed != 0 {
		return nil, Errorf(Unimplemented, "a message is compressed: send none")
	}
	if flag&flagEnd == 0 {
		return message, nil
	}
	var e end
	if err := json.Unmarshal(message, &e); err != nil {
		return nil, fmt.Errorf("the last frame of a stream: %w", err)
	}
	if e.Error != nil {
		return nil, e.Error
	}
	return nil, io.EOF
}
