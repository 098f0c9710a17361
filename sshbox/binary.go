package sshbox

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

//go:generate go run ../internal/tools/buildboxd

// boxd for the architectures it is there for, as go generate has made it: CI makes it again and compares the bytes.
var (
	//go:embed boxd/bin/boxd_linux_amd64.gz
	boxdAMD64 string
	//go:embed boxd/bin/boxd_linux_arm64.gz
	boxdARM64 string
	//go:embed boxd/bin/SHA256SUMS
	boxdSums string
)

// A boxdBinary is boxd for one architecture, as it is carried: compressed.
type boxdBinary struct {
	arch       string // as Docker names it
	sum        string // the SHA-256 of the program, in hex
	compressed string
}

// boxdFor finds the boxd for an image by what the image (or, where it does not say, the engine) says of itself.
func boxdFor(image, os, arch string) (*boxdBinary, error) {
	if os == "" {
		os = "linux"
	}
	if os == "linux" {
		if b := boxdOf(arch); b != nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("image %q is for %s/%s: boxd is there for linux/amd64 and linux/arm64; "+
		"use Server: sshbox.OpenSSH with an image that has an sshd", image, os, arch)
}

// boxdOf is the boxd for an architecture, as images (amd64) or kernels (x86_64) name it, or nil.
func boxdOf(arch string) *boxdBinary {
	b := &boxdBinary{}
	switch arch {
	case "amd64", "x86_64":
		b.arch, b.compressed = "amd64", boxdAMD64
	case "arm64", "aarch64":
		b.arch, b.compressed = "arm64", boxdARM64
	default:
		return nil
	}
	for line := range strings.Lines(boxdSums) {
		if sum, name, _ := strings.Cut(strings.TrimSpace(line), "  "); name == "boxd_linux_"+b.arch {
			b.sum = sum
		}
	}
	return b
}

// program is the uncompressed program. It is not kept: a process needs it once, if at all.
func (b *boxdBinary) program() ([]byte, error) {
	r, err := gzip.NewReader(strings.NewReader(b.compressed))
	if err != nil {
		return nil, fmt.Errorf("uncompress boxd: %w", err)
	}
	var out bytes.Buffer
	if _, err := io.Copy(&out, r); err != nil {
		return nil, fmt.Errorf("uncompress boxd: %w", err)
	}
	if sum := sha256.Sum256(out.Bytes()); hex.EncodeToString(sum[:]) != b.sum {
		return nil, fmt.Errorf("uncompress boxd: it is not the one that SHA256SUMS speaks of: go generate ./sshbox makes both")
	}
	return out.Bytes(), nil
}

// volume is the name of the engine's volume that holds the program: another program, another volume.
func (b *boxdBinary) volume() string {
	return "sandshell-boxd-" + b.sum[:12] + "-" + b.arch
}
