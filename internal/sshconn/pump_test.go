package sshconn

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSkipPast(t *testing.T) {
	mark := []byte("=mark=")
	long := strings.Repeat("noise\n", 2000)
	for _, c := range []struct {
		name               string
		pieces             []string
		line, rest, failed string // failed is what SkipPast returns as dropped, with io.EOF
	}{
		{"at once", []string{"=mark=12\nrest"}, "12", "rest", ""},
		{"after noise", []string{"hello\n=mark=12\r\nrest\n"}, "12", "rest\n", ""},
		{"in pieces", []string{"hel", "lo=ma", "rk=1", "2", "\nre", "st"}, "12", "rest", ""},
		{"after much", []string{long, long, "=mark=\n"}, "", "", ""},
		{"cut by what is dropped", []string{long + "=ma", "rk=12\nrest"}, "12", "rest", ""},
		{"not there", []string{"This account ", "is not available\n"}, "", "",
			"This account is not available\n"},
		{"no end of line", []string{"=mark=12"}, "", "", "=mark=12"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, server := connect(t)
			s, far := open(t, conn, server)
			go func() {
				for _, piece := range c.pieces {
					io.WriteString(far, piece)
				}
				far.Close()
			}()
			line, dropped, err := s.Out.SkipPast(mark)
			if c.failed != "" {
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, c.failed, string(dropped))
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.line, string(line))
			rest, err := io.ReadAll(s.Out)
			require.NoError(t, err)
			require.Equal(t, c.rest, string(rest))
			s.Close()
		})
	}
}

func TestSkipPastIsBounded(t *testing.T) {
	conn, server := connect(t)
	s, far := open(t, conn, server)
	go func() {
		io.WriteString(far, strings.Repeat("x", 1<<20))
		far.Close()
	}()
	_, dropped, err := s.Out.SkipPast([]byte("=mark="))
	require.ErrorIs(t, err, io.EOF)
	require.LessOrEqual(t, len(dropped), 4<<10+len("=mark="))

	s, far = open(t, conn, server)
	go func() {
		io.WriteString(far, "=mark="+strings.Repeat("x", 1<<20))
		far.Close()
	}()
	_, _, err = s.Out.SkipPast([]byte("=mark="))
	require.ErrorIs(t, err, bytes.ErrTooLarge)
	s.Close()
}
