package outward

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestKernels checks which kernels are refused, and in which words.
func TestKernels(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"5.5.0", "5.10.0-30-amd64", "5.18", "5.19.1", "6.18.44-fc",
		"10.0.0"} {
		require.NoError(t, checkKernel(release), release)
	}
	for _, release := range []string{"4.4.0", "4.19.0-27-amd64", "5.4.300", "", "none"} {
		require.EqualError(t, checkKernel(release), "the kernel says that it is "+release+", as "+
			"gVisor's does: Linux 5.5 or later is needed")
	}
}

// TestFilter runs the filters on system calls of both architectures.
func TestFilter(t *testing.T) {
	t.Parallel()
	const (
		amd64 = unix.AUDIT_ARCH_X86_64
		arm64 = unix.AUDIT_ARCH_AARCH64
		i386  = unix.AUDIT_ARCH_I386
		arm   = unix.AUDIT_ARCH_ARM
		x32   = 0x40000000 // __X32_SYSCALL_BIT
	)
	for _, c := range []struct {
		filter       string
		arch, number uint32
		length       uint64
		asks         bool
	}{
		{"amd64", amd64, 42, 16, true},
		{"amd64", amd64, 42, 28, true},
		{"amd64", amd64, 42, 128, true},
		{"amd64", amd64, 42, 1<<32 + 16, true}, // the kernel takes the low half
		{"amd64", amd64, 42, 1<<64 - 1, true},  // which it refuses
		{"amd64", amd64, 42, 15, false},
		{"amd64", amd64, 42, 0, false},
		{"amd64", amd64, 42, 110, false},
		{"amd64", amd64, 42 | x32, 16, false},
		{"amd64", amd64, 41, 16, false},
		{"amd64", amd64, 203, 16, false}, // sched_setaffinity
		{"amd64", i386, 42, 16, false},   // pipe
		{"amd64", i386, 362, 16, false},  // connect
		{"amd64", arm64, 42, 16, false},
		{"arm64", arm64, 203, 16, true},
		{"arm64", arm64, 203, 110, false},
		{"arm64", arm64, 203, 8, false},
		{"arm64", arm64, 42, 16, false}, // nfsservctl
		{"arm64", arm, 283, 16, false},  // connect
		{"arm64", amd64, 203, 16, false},
	} {
		program, err := filterFor(c.filter)
		require.NoError(t, err)
		var raw []bpf.RawInstruction
		for _, i := range program {
			raw = append(raw, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K})
		}
		instructions, all := bpf.Disassemble(raw)
		require.True(t, all)
		vm, err := bpf.NewVM(instructions)
		require.NoError(t, err)
		// struct seccomp_data, each word as the VM reads it; the low half of an argument first.
		data := make([]byte, 64)
		binary.BigEndian.PutUint32(data, c.number)
		binary.BigEndian.PutUint32(data[4:], c.arch)
		binary.BigEndian.PutUint32(data[32:], uint32(c.length))
		binary.BigEndian.PutUint32(data[36:], uint32(c.length>>32))
		got, err := vm.Run(data)
		require.NoError(t, err)
		want := uint32(unix.SECCOMP_RET_ALLOW)
		if c.asks {
			want = unix.SECCOMP_RET_USER_NOTIF
		}
		require.Equal(t, want, uint32(got), "%+v", c)
	}
	_, err := filterFor("riscv64")
	require.ErrorContains(t, err, "riscv64")
}
