package engine

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/sandshell/sandshell/internal/lastlines"
)

// attached is the standard streams of a process in a container, as a net.Conn.
//
// The engine sends both outputs on one stream, in frames. Read returns what is on standard output; what is on
// standard error, where boxd says what troubles it, is logged, and its end kept.
type attached struct {
	net.Conn // the engine's connection: written to as it is
	r        *bufio.Reader
	left     int // of the frame of standard output that is being read
	log      *slog.Logger

	stderr lastlines.Writer
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
				return 0, fmt.Errorf("the engine: %s", a.Said())
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
	a.log.Debug("boxd", "said", strings.TrimSpace(string(text)))
	a.stderr.Write(text)
	return nil
}

// Said is the end of what the process has said on standard error.
func (a *attached) Said() string { return a.stderr.String() }
