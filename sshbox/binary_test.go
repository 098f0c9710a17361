package sshbox

import (
	"bytes"
	"debug/elf"
	"regexp"
	"strings"
	"testing"
)

func TestBoxdBinary(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		b := boxdOf(arch)
		if b == nil {
			t.Fatalf("there is none for %s", arch)
		}
		program, err := b.program() // which checks the sum
		noError(t, err)
		f, err := elf.NewFile(bytes.NewReader(program))
		noError(t, err)
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
		if !regexp.MustCompile(`^sandshell-boxd-[0-9a-f]{12}-` + arch + `$`).MatchString(b.volume()) {
			t.Errorf("%s: volume %q", arch, b.volume())
		}
	}
	if a, b := boxdOf("amd64"), boxdOf("x86_64"); *a != *b {
		t.Errorf("x86_64 is not amd64: %s, %s", a.volume(), b.volume())
	}
	if a, b := boxdOf("arm64"), boxdOf("aarch64"); *a != *b {
		t.Errorf("aarch64 is not arm64: %s, %s", a.volume(), b.volume())
	}
}

func TestBoxdBinaryDamaged(t *testing.T) {
	whole := boxdOf("amd64")
	for what, change := range map[string]func(b *boxdBinary){
		"cut":          func(b *boxdBinary) { b.compressed = b.compressed[:len(b.compressed)/2] },
		"empty":        func(b *boxdBinary) { b.compressed = "" },
		"another's":    func(b *boxdBinary) { b.compressed = boxdARM64 },
		"another hash": func(b *boxdBinary) { b.sum = strings.Repeat("0", 64) },
	} {
		b := *whole
		change(&b)
		if p, err := b.program(); err == nil || !strings.Contains(err.Error(), "uncompress boxd") {
			t.Errorf("%s: %d bytes, %v", what, len(p), err)
		}
	}
}

func TestBoxdFor(t *testing.T) {
	for _, platform := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"linux", "aarch64"}, {"", "amd64"}} {
		if b, err := boxdFor("x", platform[0], platform[1]); err != nil || b == nil {
			t.Errorf("%v: %v", platform, err)
		}
	}
	for _, platform := range [][2]string{{"linux", "riscv64"}, {"windows", "amd64"}, {"linux", "arm"}, {"linux", ""}} {
		_, err := boxdFor("registry/x:1", platform[0], platform[1])
		if err == nil {
			t.Fatalf("%v: there is one", platform)
		}
		for _, want := range []string{`"registry/x:1"`, platform[0] + "/" + platform[1], "linux/amd64", "linux/arm64", "sshbox.OpenSSH"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %q", want, err)
			}
		}
	}
}

func BenchmarkBoxdProgram(b *testing.B) {
	binary := boxdOf("amd64")
	for b.Loop() {
		_, err := binary.program()
		noError(b, err)
	}
}
