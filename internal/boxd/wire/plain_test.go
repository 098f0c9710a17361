package wire_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// TestPlain talks over a Plain connection both ways, in packets of many sizes.
func TestPlain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	far, err := l.Accept()
	require.NoError(t, err)
	ends := [2]ssh.Conn{}
	for i, raw := range []net.Conn{near, far} {
		c, channels, requests, err := wire.Plain(raw)
		require.NoError(t, err)
		defer c.Close()
		ends[i] = c
		go ssh.DiscardRequests(requests)
		go func() {
			for nc := range channels {
				ch, requests, err := nc.Accept()
				if err != nil {
					continue
				}
				go ssh.DiscardRequests(requests)
				go func() {
					defer ch.Close()
					io.Copy(ch, ch)
				}()
			}
		}()
	}
	for _, c := range ends {
		ch, requests, err := c.OpenChannel("echo", nil)
		require.NoError(t, err)
		go ssh.DiscardRequests(requests)
		for size := 1; size < 300<<10; size = size*3 + 1 {
			sent := make([]byte, size)
			sent[size-1] = 1
			go ch.Write(sent)
			got := make([]byte, size)
			_, err := io.ReadFull(ch, got)
			require.NoError(t, err)
			require.Equal(t, sent, got)
		}
	}
}

// FuzzPlain sends what is no SSH.
func FuzzPlain(f *testing.F) {
	packet := func(b ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	f.Add([]byte("SSH-2.0-x\r\n"))
	f.Add(packet())
	f.Add(packet(0))
	f.Add(packet(0, 90))
	f.Add(append(packet(0, 80, 0, 0, 0, 1, 'x', 1), packet(0, 94, 0, 0, 0, 0)...))
	f.Add(packet(1, 2))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, said []byte) {
		near, far := net.Pipe()
		go io.Copy(io.Discard, far)
		c, channels, requests, err := wire.Plain(near)
		require.NoError(t, err)
		go ssh.DiscardRequests(requests)
		go func() {
			for nc := range channels {
				nc.Reject(ssh.Prohibited, "")
			}
		}()
		far.Write(said)
		far.Close()
		c.Wait()
	})
}
