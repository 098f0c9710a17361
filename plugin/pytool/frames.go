package pytool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/headtail"
)

// A decoder reads the frames that sandshell_tool.py writes. It drops what comes before the nonce,
// because a sitecustomize.py may print something.
type decoder struct {
	nonce          []byte
	begun          bool // whether the nonce has been read
	stdout, stderr io.Writer
	answers        map[byte][]byte // frames that are not output, by kind
	buf            []byte          // the beginning of the nonce, of a header or of an answer
	kind           byte            // of the frame that is being read; 0 between frames
	left           int             // bytes of the frame that are missing
	answerSize     int64           // bytes of all frames that are not output, as headers claim
	failed         error           // the error of the first bad frame; the rest is not read
	stop           func(error)     // called with failed, to end the program, unless it is nil
}

const headerSize = 5

func (d *decoder) Write(p []byte) (int, error) {
	size := len(p)
	if d.failed != nil {
		return 0, d.failed
	}
	if !d.begun {
		d.buf = append(d.buf, p...)
		at := bytes.Index(d.buf, d.nonce)
		if at < 0 {
			d.buf = d.buf[max(len(d.buf)-len(d.nonce), 0):]
			return size, nil
		}
		d.begun = true
		p, d.buf = d.buf[at+len(d.nonce):], nil
	}
	for len(p) > 0 {
		if d.kind == 0 {
			n := min(headerSize-len(d.buf), len(p))
			d.buf, p = append(d.buf, p[:n]...), p[n:]
			if len(d.buf) < headerSize {
				break
			}
			d.kind, d.left = d.buf[0], int(binary.BigEndian.Uint32(d.buf[1:]))
			d.buf = nil
			if strings.IndexByte("oe", d.kind) < 0 {
				d.answerSize += int64(d.left)
				if _, err := bounded.Size(d.answerSize, "the answer of the function",
					answerMax); err != nil {
					return d.fail(err)
				}
			}
		}
		n := min(d.left, len(p))
		piece := p[:n]
		p, d.left = p[n:], d.left-n
		switch d.kind {
		case 'o':
			d.stdout.Write(piece)
		case 'e':
			d.stderr.Write(piece)
		case 'r', 'x', 'p', 'v':
			d.buf = append(d.buf, piece...)
			if d.left == 0 {
				d.answers[d.kind] = d.buf
			}
		default:
			return d.fail(fmt.Errorf("a frame of kind %q", d.kind))
		}
		if d.left > 0 {
			break
		}
		d.kind, d.buf = 0, nil
	}
	return size, nil
}

func (d *decoder) fail(err error) (int, error) {
	d.failed = err
	if d.stop != nil {
		d.stop(err)
	}
	return 0, err
}

// answerMax is how many bytes the frames that are not output may have in all. The largest is a
// result with its state, which is in memory twice for a moment.
const answerMax = 10 << 20

// A capture keeps head and tail of what is written to it, and writes everything to tee. Several
// goroutines may use it.
type capture struct {
	mu   sync.Mutex
	kept headtail.Buffer
	tee  io.Writer // nil if there is none
	err  error     // the first error of tee, which gets nothing after it
}

func newCapture(limit int, tee io.Writer) *capture {
	return &capture{kept: headtail.Buffer{Max: limit}, tee: tee}
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tee != nil && c.err == nil && len(p) > 0 {
		_, c.err = c.tee.Write(p)
	}
	return c.kept.Write(p)
}

// text returns head and tail as valid UTF-8, and the number of bytes between them.
func (c *capture) text() (string, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, omitted := c.kept.Text()
	return strings.ToValidUTF8(text, "\uFFFD"), omitted
}

// teeErr returns the error of tee.
func (c *capture) teeErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
