//go:build linux

package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/sandbox/recording"
)

// BenchmarkRecord records 100 MB of output to a file. The floor is the same without a recording.
func BenchmarkRecord(b *testing.B) {
	places(b, func(b *testing.B, at place) {
		plain := newPrinter(b, open(b, at))
		file, err := os.Create(filepath.Join(b.TempDir(), "box.cast"))
		noError(b, err)
		rec := recording.New(open(b, at), file)
		b.Cleanup(func() {
			noError(b, rec.Close())
			noError(b, file.Close())
		})
		recorded := newPrinter(b, rec)
		comparison{
			floor: func() { plain.print(10) },
			ours:  func() { recorded.print(10) },
			before: func() { // keeps the file of one turn
				_, err := file.Seek(0, 0)
				noError(b, err)
				noError(b, file.Truncate(0))
			},
			rounds: 5, bytes: 100e6, maxRatio: 1.1,
		}.run(b)
	})
}
