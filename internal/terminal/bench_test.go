package terminal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// benchmarkOutputs returns about 1 MiB of each kind of output.
func benchmarkOutputs() map[string][]byte {
	const size = 1 << 20
	fill := func(line func(i int) string) []byte {
		var b bytes.Buffer
		for i := 0; b.Len() < size; i++ {
			b.WriteString(line(i))
		}
		return b.Bytes()
	}
	random := make([]byte, size)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	text := strings.Repeat("lorem ipsum ", 7)[:79]
	return map[string][]byte{
		"Plain":  fill(func(int) string { return text + "\n" }),
		"CRLF":   fill(func(int) string { return text + "\r\n" }),
		"UTF8":   fill(func(int) string { return "zażółć gęślą jaźń 漢字 zażółć gęślą jaźń\n" }),
		"Short":  fill(func(int) string { return "y\n" }),
		"OneRow": fill(func(int) string { return text }),
		"Coloured": fill(func(i int) string {
			return fmt.Sprintf("\x1b[01m\x1b[Kmain.c:%d:5:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: "+
				"\x1b[m\x1b[Kexpected expression before token\n", i)
		}),
		"Progress": fill(func(i int) string {
			return fmt.Sprintf("\r%3d%%|%-50s| %d/1000 [00:01<00:02, 99.5it/s]", i%100,
				strings.Repeat("#", i%50), i%1000)
		}),
		"Random": random,
		"Undrawn": fill(func(int) string { // lines on the alternate screen, where nothing draws
			return "\x1b[?1049h" + strings.Repeat("y\n", 16<<10)
		}),
		// the most work for each byte
		"Edits": fill(func(int) string { return "\x1b[1K\t" }),
		"Screen": fill(func(i int) string {
			return fmt.Sprintf("\x1b[%d;%dH\x1b[1;32mcell %d\x1b[m\x1b[K", 1+i%24, 1+i%60, i)
		}),
	}
}

var benchmarkNames = []string{"Plain", "CRLF", "UTF8", "Short", "OneRow", "Coloured", "Progress",
	"Random", "Undrawn", "Edits", "Screen"}

// BenchmarkCleaner reads output in pieces of 32 KiB. Its floor copies them.
func BenchmarkCleaner(b *testing.B) {
	outputs := benchmarkOutputs()
	const piece = 32 << 10
	dst := make([]byte, 0, 4<<20)
	b.Run("floor=copy", func(b *testing.B) {
		raw := outputs["Plain"]
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			dst = dst[:0]
			for rest := raw; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
				dst = append(dst, rest[:min(piece, len(rest))]...)
			}
		}
	})
	for _, name := range benchmarkNames {
		raw := outputs[name]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			var c Cleaner
			for b.Loop() {
				dst = dst[:0]
				for rest := raw; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
					dst = c.Append(dst, rest[:min(piece, len(rest))])
				}
			}
		})
	}
}

// BenchmarkRender renders the last 256 KiB of output.
func BenchmarkRender(b *testing.B) {
	outputs := benchmarkOutputs()
	for _, name := range benchmarkNames {
		raw := outputs[name][:256<<10]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				Render(raw, 24, 80)
			}
		})
	}
}

func BenchmarkTail(b *testing.B) {
	t := NewTail(256 << 10)
	p := make([]byte, 32<<10)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		t.Write(p)
	}
}
