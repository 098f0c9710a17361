package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDrawing shows which sequences of a recording reach the terminal that plays it.
func TestDrawing(t *testing.T) {
	for text, want := range map[string]bool{
		"\x1b[2J": true, "\x1b[1;31m": true, "\x1b[38:5:1m": true, "\x1b[3;4H": true,
		"\x1b[2;20r": true, "\x1b[4h": true, "\x1b[?25l": true, "\x1b[?1049h": true, "\x1b7": true,
		"\x1b(0": true, "\x1b[?7;25h": true,
		"\x1b[c": false, "\x1b[6n": false, "\x1b[?1000h": false, "\x1b[?25;1006h": false,
		"\x1b[?1h": false, "\x1b[?2004h": false, "\x1b[20h": false, "\x1b[>4;2m": false,
		"\x1b[>1u": false, "\x1b[2;1'z": false, "\x1b[!p": false, "\x1b]0;title\a": false,
		"\x1b[h": false, "\x1b[?6c": false, "\x1bc": false, "\x1b=": false,
	} {
		var d drawing
		passed := d.pass(text[:1]) + d.pass(text[1:]+"after")
		if want {
			require.Equal(t, text+"after", passed)
		} else {
			require.Equal(t, "after", passed, "%q", text)
		}
	}
}
