package kubebox

import (
	"fmt"
	"io"

	"github.com/sandshell/sandshell/internal/boxd/bin"
)

// WriteBoxd writes this version's boxd for an architecture, "amd64" or "arm64": the program that a
// Config.BoxdImage has as /boxd, executable. For example, of
//
//	FROM scratch
//	COPY --chmod=755 boxd /boxd
func WriteBoxd(w io.Writer, arch string) error {
	b := bin.For(arch)
	if b == nil {
		return fmt.Errorf("kubebox: boxd is there for %q only, not for %q", bin.Architectures, arch)
	}
	program, err := b.Program()
	if err == nil {
		_, err = w.Write(program)
	}
	if err != nil {
		return fmt.Errorf("kubebox: write boxd: %w", err)
	}
	return nil
}
