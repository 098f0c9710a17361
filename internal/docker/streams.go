package docker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/sandshell/sandshell/internal/headtail"
	"github.com/sandshell/sandshell/internal/printable"
)

// attached is the standard streams of a process in a container, as a net.Conn.
//
// The engine sends both outputs on one stream, in frames. Read returns standard output. Standard
// error, on which boxd reports its troubles, is logged and kept.
type attached struct {
	net.Conn // the engine's connection: written to as it is
	r        *bufio.Reader
	left     int // of the frame of standard output that is being read
	log      *slog.Logger

	mu     sync.Mutex
	stderr headtail.Buffer
}

// saidMax is how many bytes of the standard error are kept. The head matters as much as the tail:
// when Go's runtime is out of threads, it first says so and then prints its stacks.
const saidMax = 2 << 10

// newAttached reads through a small buffer, for the frames' headers: the rest of a frame goes
// straight to a reader with a large one.
func newAttached(conn net.Conn, r io.Reader, log *slog.Logger) *attached {
	return &attached{Conn: conn, r: bufio.NewReaderSize(r, 4<<10), log: log,
		stderr: headtail.Buffer{Max: saidMax}}
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
	a.log.Debug("boxd", "said", strings.TrimSpace(string(text)))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stderr.Write(text)
	return nil
}

// Said returns what the process has said on standard error; of a long text, the head and the tail.
func (a *attached) Said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	text, _ := a.stderr.Text()
	return strings.TrimSpace(text)
}
