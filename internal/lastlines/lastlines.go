// Package lastlines keeps the end of what a program prints, for errors.
package lastlines

import (
	"slices"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/printable"
)

// Of returns the last five lines of an output that are not blank, 1000 bytes at most. They are safe
// to print: package printable has replaced controls.
func Of(output string) string {
	const most, size = 5, 1000
	var last []string
	for len(output) > 0 && len(last) < most {
		at := strings.LastIndexByte(output, '\n')
		if line := strings.TrimRight(output[at+1:], " \t\r"); line != "" {
			last = append(last, line)
		}
		output = output[:max(at, 0)]
	}
	slices.Reverse(last)
	text := strings.Join(last, "\n")
	if len(text) > size {
		text = "… " + text[len(text)-size:]
	}
	return printable.Text(strings.ToValidUTF8(text, ""))
}

// A Writer keeps the end of what is written to it. The zero value is ready for use, also
// concurrently.
type Writer struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	const keep = 16 << 10
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	if len(w.text) > 2*keep {
		w.text = slices.Clone(w.text[len(w.text)-keep:])
	}
	return len(p), nil
}

// String returns the last lines.
func (w *Writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Of(string(w.text))
}
