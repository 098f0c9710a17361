package bin

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgram(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64,
		"arm64": elf.EM_AARCH64} {
		b := For(arch)
		if b == nil {
			t.Fatalf("there is none for %s", arch)
		}
		program, err := b.Program() // which checks the sum
		require.NoError(t, err)
		f, err := elf.NewFile(bytes.NewReader(program))
		require.NoError(t, err)
		if f.Machine != machine {
			t.Errorf("%s: is for %v", arch, f.Machine)
		}
		if libraries, err := f.ImportedLibraries(); len(libraries) > 0 {
			t.Errorf("%s: needs %v, %v", arch, libraries, err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("%s: is not static", arch)
			}
		}
	}
	if a, b := For("amd64"), For("x86_64"); *a != *b {
		t.Errorf("x86_64 is not amd64: %s, %s", a.Sum, b.Sum)
	}
	if a, b := For("arm64"), For("aarch64"); *a != *b {
		t.Errorf("aarch64 is not arm64: %s, %s", a.Sum, b.Sum)
	}
}

func TestDamaged(t *testing.T) {
	whole := For("amd64")
	for what, change := range map[string]func(b *Binary){
		"cut":          func(b *Binary) { b.Compressed = b.Compressed[:len(b.Compressed)/2] },
		"empty":        func(b *Binary) { b.Compressed = "" },
		"another's":    func(b *Binary) { b.Compressed = arm64 },
		"another hash": func(b *Binary) { b.Sum = strings.Repeat("0", 64) },
	} {
		b := *whole
		change(&b)
		if p, err := b.Program(); err == nil || !strings.Contains(err.Error(), "uncompress boxd") {
			t.Errorf("%s: %d bytes, %v", what, len(p), err)
		}
	}
}

func BenchmarkProgram(b *testing.B) {
	binary := For("amd64")
	for b.Loop() {
		_, err := binary.Program()
		require.NoError(b, err)
	}
}
