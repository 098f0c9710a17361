// Package lastlines keeps the end of what a program prints, for errors.
package lastlines

import (
	"slices"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/printable"
)

// Of returns the last five lines of an output that are not blank, at most 1000 bytes. They are safe
// to print: they have passed printable.Text.
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

// A Writer keeps the end of what is written to it. The zero value is ready for use. A Writer may be
// used concurrently.
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

// String returns Of everything that was written.
func (w *Writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Of(string(w.text))
}
