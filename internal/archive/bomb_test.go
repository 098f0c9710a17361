package archive

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/hostiletest"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// An archive has directories without end, with the longest possible paths.
func TestHostileDirectories(t *testing.T) {
	hostiletest.Case{Name: "Directories", Says: "the list of the directories is larger",
		Call: func(ctx context.Context, t *testing.T) error {
			r, w := io.Pipe()
			go func() {
				out := tar.NewWriter(w)
				write := func(name string) error {
					return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name,
						Mode:   0o755,
						Format: tar.FormatGNU})
				}
				name := "x"
				write(name)
				for range 14 {
					name += "/" + strings.Repeat("d", 255)
					write(name)
				}
				for n := 0; write(fmt.Sprintf("%s/%0200d", name, n)) == nil; n++ {
				}
			}()
			defer r.Close()
			u, err := NewUnpacker(t.TempDir()+"/new", Options{})
			if err != nil {
				return err
			}
			defer u.Close()
			if !testenv.All() { // the full size takes ten seconds
				u.memory.Max = 1 << 20
			}
			return u.Unpack(ctx, r)
		}}.Run(t)
}
