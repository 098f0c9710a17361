// Package bin is boxd as it is carried: built for each architecture, and compressed.
package bin

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

//go:generate go run ../../../internal/tools/buildboxd

// As go generate has made them. CI makes them again and compares the bytes.
var (
	//go:embed boxd_linux_amd64.gz
	amd64 string
	//go:embed boxd_linux_arm64.gz
	arm64 string
	//go:embed SHA256SUMS
	sums string
)

// Architectures are those that there is a boxd for, as Docker names them.
var Architectures = []string{"amd64", "arm64"}

// A Binary is boxd for one architecture.
type Binary struct {
	Arch       string // as Docker names it
	Sum        string // the SHA-256 of the program, in hex
	Compressed string // by gzip
}

// For returns the boxd for an architecture, as images (amd64) or kernels (x86_64) name it: nil if
// there is none.
func For(arch string) *Binary {
	b := &Binary{}
	switch arch {
	case "amd64", "x86_64":
		b.Arch, b.Compressed = "amd64", amd64
	case "arm64", "aarch64":
		b.Arch, b.Compressed = "arm64", arm64
	default:
		return nil
	}
	for line := range strings.Lines(sums) {
		if sum, name, _ := strings.Cut(strings.TrimSpace(line), "  "); name == "boxd_linux_"+
			b.Arch {
			b.Sum = sum
		}
	}
	return b
}

// Program returns the uncompressed program. It is not kept: a process needs it once, if at all.
func (b *Binary) Program() ([]byte, error) {
	r, err := gzip.NewReader(strings.NewReader(b.Compressed))
	if err != nil {
		return nil, fmt.Errorf("uncompress boxd: %w", err)
	}
	var out bytes.Buffer
	if _, err := io.Copy(&out, r); err != nil {
		return nil, fmt.Errorf("uncompress boxd: %w", err)
	}
	if sum := sha256.Sum256(out.Bytes()); hex.EncodeToString(sum[:]) != b.Sum {
		return nil, fmt.Errorf("uncompress boxd: it is not the one that SHA256SUMS speaks of: go " +
			"generate ./internal/boxd/bin makes both")
	}
	return out.Bytes(), nil
}
