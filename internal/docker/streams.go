package docker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// attached is a net.Conn over the standard streams of a process in a container.
//
// The engine sends both outputs on one stream, in frames. Read returns standard output, and keeps
// standard error for Said.
type attached struct {
	net.Conn // to the engine: what is written to it is standard input
	r        *bufio.Reader
	left     int // bytes of the current frame of standard output that have not been read
	stderr   *remotebox.Stderr
}

// newAttached returns an attached that reads through a small buffer, for the frames' headers. The
// rest of a frame goes straight to the caller's larger buffer.
func newAttached(conn net.Conn, r io.Reader, log *slog.Logger) *attached {
	return &attached{Conn: conn, r: bufio.NewReaderSize(r, 4<<10), stderr: remotebox.NewStderr(log)}
}

func (a *attached) Read(p []byte) (int, error) {
	for a.left == 0 {
		var header [8]byte // the stream, three zeros, the length; see stdcopy
		if _, err := io.ReadFull(a.r, header[:]); err != nil {
			return 0, err
		}
		length := int(binary.BigEndian.Uint32(header[4:]))
		switch stream := stdcopy.StdType(header[0]); stream {
		case stdcopy.Stdout:
			a.left = length
		case stdcopy.Stderr, stdcopy.Systemerr:
			if err := a.readStderr(length); err != nil {
				return 0, err
			}
			if stream == stdcopy.Systemerr {
				return 0, fmt.Errorf("the engine: %s", printable.Text(a.Said()))
			}
		default:
			return 0, fmt.Errorf("the engine's stream is broken: a frame of kind %d", stream)
		}
	}
	n, err := a.r.Read(p[:min(len(p), a.left)])
	a.left -= n
	return n, err
}

func (a *attached) readStderr(length int) error {
	text := make([]byte, min(length, 4<<10))
	if _, err := io.ReadFull(a.r, text); err != nil {
		return err
	}
	if _, err := a.r.Discard(length - len(text)); err != nil {
		return err
	}
	a.stderr.Write(text)
	return nil
}

// Said implements client.Streams.
func (a *attached) Said() string { return a.stderr.Said() }
