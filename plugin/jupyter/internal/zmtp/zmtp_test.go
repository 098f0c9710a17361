package zmtp

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// greeting is the greeting of libzmq 4.3.
var greeting = "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x01NULL" + strings.Repeat("\x00", 48)

const ready = "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"

// talk shakes hands with a peer that sends says. The channel gets what the peer has received.
func talk(t *testing.T, kind, identity, says string) (*Conn, <-chan string, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	heard := make(chan string, 1)
	go func() {
		io.WriteString(theirs, says)
		theirs.Close()
	}()
	both := &halves{Conn: ours}
	c, err := NewConn(t.Context(), both, kind, identity)
	heard <- both.written.String()
	return c, heard, err
}

// halves is a connection that keeps what is written.
type halves struct {
	net.Conn
	written bytes.Buffer
}

func (h *halves) Write(p []byte) (int, error) { return h.written.Write(p) }

func long(flags byte, size uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte{flags}, size))
}

func TestHandshake(t *testing.T) {
	c, heard, err := talk(t, Dealer, "me", greeting+ready)
	require.NoError(t, err)
	defer c.Close()
	said := <-heard
	require.Equal(t, "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL", said[:16])
	require.Equal(t,
		"\x04\x2b\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x02me",
		said[64:])
}

func TestHandshakeRefused(t *testing.T) {
	for _, c := range []struct{ name, says, err string }{
		{"Nothing", "", "unexpected EOF"},
		{"Half", greeting[:20], "unexpected EOF"},
		{"NotZMTP", "SSH-2.0-OpenSSH_9.2p1 Debian" + strings.Repeat(" ", 64),
			"does not speak ZMTP"},
		{"Old", greeting[:10] + "\x01" + greeting[11:], "speaks ZMTP 1, which is too old"},
		{"Mechanism", greeting[:12] + "CURVE" + greeting[17:], `wants the mechanism "CURVE"`},
		{"Message", greeting + "\x00\x01x", "a message comes before READY"},
		{"Error", greeting + "\x04\x0a\x05ERROR\x03bad", `answers ERROR "\x03bad"`},
		{"Empty", greeting + "\x04\x00", "answers"},
		{"ShortName", greeting + "\x04\x02\x09R", "answers"},
		{"HugeCommand", greeting + long(flagCommand|flagLong, 1<<40),
			"a command has 1099511627776 bytes"},
		{"Flags", greeting + "\x80\x00", "a frame has the flags 0x80"},
		{"ManyCommands", greeting + "\x05\x00", "a frame has the flags 0x5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := talk(t, Sub, "", c.says)
			require.ErrorContains(t, err, c.err)
		})
	}
}

// The handshake with a silent peer ends with ctx.
func TestHandshakeEnds(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := NewConn(ctx, ours, Sub, "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestReceive(t *testing.T) {
	big := strings.Repeat("b", 3<<20)
	says := greeting + ready +
		"\x00\x01a" + // a message
		"\x01\x00" + "\x01\x02bc" + "\x00\x00" + // a message with empty frames
		"\x04\x07\x04PING\x00\x00" + // a command that is ignored
		long(flagLong, uint64(len(big))) + big
	c, _, err := talk(t, Sub, "", says)
	require.NoError(t, err)
	defer c.Close()
	for _, want := range [][]string{{"a"}, {"", "bc", ""}, {big}} {
		m, err := c.Receive()
		require.NoError(t, err)
		require.Zero(t, m.Omitted)
		require.Len(t, m.Frames, len(want))
		for i := range want {
			require.True(t, want[i] == string(m.Frames[i]))
		}
	}
	_, err = c.Receive()
	require.Equal(t, io.EOF, err)
}

func TestReceiveMalformed(t *testing.T) {
	for _, c := range []struct{ name, says, err string }{
		{"Cut", "\x00\x05ab", "unexpected EOF"},
		{"CutHeader", "\x02\x00\x00", "unexpected EOF"},
		{"CutMessage", "\x01\x01a", "unexpected EOF"},
		{"Flags", "\x10\x00", "a frame has the flags 0x10"},
		{"Negative", long(flagLong, 1<<63), "a frame has 9223372036854775808 bytes"},
		// A size that is only claimed takes no memory.
		{"Promise", long(flagLong, Limit) + "short", "unexpected EOF"},
		{"HugeCommand", long(flagCommand|flagLong, 1<<30), "a command has 1073741824 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, _, err := talk(t, Sub, "", greeting+ready+c.says)
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Receive()
			require.ErrorContains(t, err, c.err)
		})
	}
}

// TestLimit checks that the end of a message that is too large is left out, and that the next
// message arrives.
func TestLimit(t *testing.T) {
	big := strings.Repeat("x", Limit)
	says := greeting + ready +
		"\x01\x04head" + long(flagLong|flagMore, Limit) + big + "\x00\x04last" +
		strings.Repeat("\x01\x00", 1000) + "\x00\x00" +
		"\x00\x01a"
	c, _, err := talk(t, Sub, "", says)
	require.NoError(t, err)
	defer c.Close()
	m, err := c.Receive()
	require.NoError(t, err)
	require.Len(t, m.Frames, 1)
	require.EqualValues(t, Limit+4, m.Omitted)
	m, err = c.Receive()
	require.NoError(t, err)
	require.Len(t, m.Frames, frames)
	require.EqualValues(t, 1001-frames, m.Omitted)
	m, err = c.Receive()
	require.NoError(t, err)
	require.Equal(t, "a", string(m.Frames[0]))
}

func TestSend(t *testing.T) {
	both := &halves{}
	c := &Conn{conn: both}
	require.NoError(t, c.Subscribe("x"))
	require.NoError(t, c.Send([]byte("a"), nil, bytes.Repeat([]byte("b"), 256)))
	require.Equal(t, "\x00\x02\x01x"+"\x01\x01a"+"\x01\x00"+"\x02\x00\x00\x00\x00\x00\x00\x01\x00"+
		strings.Repeat("b", 256), both.written.String())
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x01\x04head\x00\x04last"))
	f.Add([]byte(long(flagLong, 300) + "short"))
	f.Fuzz(func(t *testing.T, says []byte) {
		c := &Conn{conn: &halves{}}
		c.r = newReader(iotest.OneByteReader(bytes.NewReader(says)))
		for {
			if _, err := c.Receive(); err != nil {
				return
			}
		}
	})
}
