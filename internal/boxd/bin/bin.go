// Package bin holds boxd as it is embedded in programs: built for each architecture, and
// compressed.
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

// go generate makes these files. CI makes them again and compares the bytes.
var (
	//go:embed boxd_linux_amd64.gz
	amd64 string
	//go:embed boxd_linux_arm64.gz
	arm64 string
	//go:embed SHA256SUMS
	sums string
)

// Architectures lists the architectures that there is a boxd for, by Docker's names.
var Architectures = []string{"amd64", "arm64"}

// A Binary is boxd for one architecture.
type Binary struct {
	Arch       string // by Docker's name
	Sum        string // the SHA-256 of the program, in hex
	Compressed string // by gzip
}

// For returns the boxd for an architecture, by its name in images (amd64) or kernels (x86_64). It
// returns nil if there is none.
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

// Program returns the uncompressed program. It uncompresses it at each call: a process needs the
// program once, if at all.
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
		return nil, fmt.Errorf("uncompress boxd: its hash is not the one in SHA256SUMS: go " +
			"generate ./internal/boxd/bin makes both")
	}
	return out.Bytes(), nil
}
