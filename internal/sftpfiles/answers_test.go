package sftpfiles

import (
	"bytes"
	"io"
	"testing"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/stretchr/testify/require"
)

// FuzzAnswers checks that whole packets are read as the server has sent them.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x05\x67abcd\x00\x00\x00\x01\x68"), 3)
	f.Add([]byte(
		"\x00\x00\x00\x1d\x68\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01a"+
			"\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x02\x00"), 4)
	f.Fuzz(func(t *testing.T, says []byte, piece int) {
		if piece <= 0 || piece > 1<<20 {
			t.Skip("no piece")
		}
		a := &countingReader{r: bytes.NewReader(says)}
		defer a.countList(&bounded.List{What: "the list", Max: 1 << 10}, func(error) {})()
		var got []byte
		buf := make([]byte, piece)
		for {
			n, err := a.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				require.True(t, bytes.HasPrefix(says, got))
				if err == io.EOF && a.leftInPacket == 0 {
					require.Equal(t, string(says), string(got))
				}
				return
			}
		}
	})
}
