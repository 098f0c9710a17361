//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// However the output is cut into pieces, the piece with the marker's last byte is reported.
func TestMarkerSpotter(t *testing.T) {
	const marker = endMarker + "12;nonce;0;b0;/a\adirectory;nonce\a"
	text := "output\x1b]133;\x1b]13\a" + marker
	for first := range len(text) {
		for second := first; second < len(text); second++ {
			var m markerSpotter
			m.mayEnd([]byte(text[:first]))
			m.mayEnd([]byte(text[first:second]))
			require.True(t, m.mayEnd([]byte(text[second:])), "%d, %d", first, second)
		}
	}
	var m markerSpotter
	require.False(t, m.mayEnd([]byte("\a\x1b]133;C;1;nonce;0\a\x1b]0;title\a")))
	require.False(t, m.mayEnd([]byte(endMarker)))
	require.False(t, m.mayEnd([]byte("1;nonce")))
	require.True(t, m.mayEnd([]byte("\a")))
	const nonce = "0123456789abcdef0123456789abcdef"
	m.mayEnd([]byte(endMarker))
	require.False(t, m.mayEnd([]byte("\x1b]133;A\a\x1b]133;C;1;"+nonce+";\a")), "begins")
	for _, p := range []string{"\x1b]133;A\ax\a", "\x1b]133;C;1;" + nonce + "\a",
		"\x1b]133;C;1;" + nonce + ";" + nonce + "\a", "A\a", ";" + nonce + "\a"} {
		require.True(t, m.mayEnd([]byte(p)), "%q", p)
	}
	m.mayEnd([]byte(strings.Repeat("x", endMarkerMax)))
	require.False(t, m.mayEnd([]byte("\a")), "no marker is so long")
}
