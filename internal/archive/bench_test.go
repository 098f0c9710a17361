package archive

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkPack and BenchmarkUnpack measure one end each, with 2,000 small files and with one file
// of 64 MiB.
func BenchmarkPack(b *testing.B) {
	benchmark(b, func(b *testing.B, dir string, archive []byte) {
		if err := Pack(b.Context(), io.Discard, filepath.Join(dir, "x")); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkUnpack(b *testing.B) {
	benchmark(b, func(b *testing.B, dir string, archive []byte) {
		if err := Unpack(b.Context(), bytes.NewReader(archive), filepath.Join(dir, "y"),
			Options{}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := os.RemoveAll(filepath.Join(dir, "y")); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	})
}

func benchmark(b *testing.B, f func(b *testing.B, dir string, archive []byte)) {
	for _, c := range []struct {
		name        string
		files, size int
	}{{"2000files", 2000, 1 << 10}, {"64MiB", 1, 64 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			// In memory: otherwise the disk would be measured.
			if memory, err := os.MkdirTemp("/dev/shm", "sandshell-"); err == nil {
				dir = memory
				b.Cleanup(func() { os.RemoveAll(memory) })
			}
			for i := range c.files {
				at := filepath.Join(dir, "x", fmt.Sprint(i/100))
				if err := os.MkdirAll(at, 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(at, fmt.Sprint(i)), make([]byte, c.size),
					0o644); err != nil {
					b.Fatal(err)
				}
			}
			var archive bytes.Buffer
			if err := Pack(b.Context(), &archive, filepath.Join(dir, "x")); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(c.files * c.size))
			b.ReportAllocs()
			for b.Loop() {
				f(b, dir, archive.Bytes())
			}
		})
	}
}
