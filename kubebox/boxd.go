package kubebox

import (
	"fmt"
	"io"

	"github.com/sandshell/sandshell/internal/boxd/bin"
)

// WriteBoxd writes this version's boxd for an architecture, "amd64" or "arm64". An image for
// Config.BoxdImage has this file as /boxd, executable. For example, if the file is named boxd, this
// Dockerfile makes such an image:
//
//	FROM scratch
//	COPY --chmod=755 boxd /boxd
func WriteBoxd(w io.Writer, arch string) error {
	b := bin.For(arch)
	if b == nil {
		return fmt.Errorf("kubebox: write boxd: there is none for the architecture %q: give one "+
			"of %q", arch, bin.Architectures)
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
