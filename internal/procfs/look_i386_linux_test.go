//go:build amd64

package procfs

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

const i386Base = 0x08048000

// i386Program writes a static i386 program that makes one system call and ends. args returns the
// call's arguments, given the address of data.
func i386Program(t *testing.T, number uint32, args func(data uint32) [5]uint32,
	data []byte) string {
	t.Helper()
	const header, segment, instruction = 52, 32, 5
	dataAt := uint32(header + segment + 6*instruction + 2 + instruction + 2)
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			require.NoError(t, binary.Write(&b, binary.LittleEndian, v))
		}
	}
	size := dataAt + 64
	put([]byte("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"), uint16(2), uint16(3),
		uint32(1), uint32(i386Base+header+segment),
		uint32(header), uint32(0), uint32(0), uint16(header), uint16(segment), uint16(1),
		uint16(40), uint16(0), uint16(0))
	// PT_LOAD, all rights
	put(uint32(1), uint32(0), uint32(i386Base), uint32(i386Base), size, size, uint32(7),
		uint32(0x1000))
	a := args(i386Base + dataAt)
	for i, move := range []byte{0xbb, 0xb9, 0xba, 0xbe, 0xbf} { // mov ebx, ecx, edx, esi, edi
		put(move, a[i])
	}
	put(byte(0xb8), number, []byte{0xcd, 0x80}) // mov eax; int 0x80
	put(byte(0xb8), uint32(1), []byte{0xcd, 0x80})
	require.EqualValues(t, dataAt, b.Len())
	put(data, make([]byte, 64-len(data)))
	path := filepath.Join(t.TempDir(), "i386")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o755))
	return path
}

func TestI386(t *testing.T) {
	exit := i386Program(t, 1, func(uint32) [5]uint32 { return [5]uint32{} }, nil)
	if err := exec.Command(exit).Run(); err != nil {
		t.Skip("this machine executes no 32-bit programs: ", err)
	}
	const forever = 1<<32 - 1
	pollfd := []byte{0, 0, 0, 0, 1, 0, 0, 0}
	for _, c := range []struct {
		name   string
		number uint32
		args   func(data uint32) [5]uint32
		data   []byte
		waits  bool
		alone  bool
	}{
		{"read", 3, func(d uint32) [5]uint32 { return [5]uint32{0, d, 1} }, nil, true, true},
		{"poll", 168, func(d uint32) [5]uint32 {
			return [5]uint32{d, 1, forever}
		}, pollfd, true, true},
		{"poll with a limit", 168, func(d uint32) [5]uint32 {
			return [5]uint32{d, 1, 60000}
		}, pollfd, true, false},
		{"select", 142, func(d uint32) [5]uint32 {
			return [5]uint32{1, d, 0, 0, 0}
		}, []byte{1}, true, true},
		{"waitpid as poll", 7, func(d uint32) [5]uint32 {
			return [5]uint32{d, 1, forever}
		}, pollfd, false, false},
		{"nanosleep", 162, func(d uint32) [5]uint32 {
			return [5]uint32{d, 0}
		}, []byte{60, 0, 0, 0, 0, 0, 0, 0}, false, false},
		{"pause", 29, func(d uint32) [5]uint32 { return [5]uint32{0, d, 1} }, nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := i386Program(t, c.number, c.args, c.data)
			s := startSession(t)
			s.run(path + "; sleep 600")
			if c.waits {
				s.until(func(l proc.Look) bool {
					return len(l.Waits) == 1 && l.Waits[0].Name == "i386" &&
						l.Waits[0].Alone == c.alone
				})
				return
			}
			s.until(func(l proc.Look) bool {
				return l.Reads == "" && len(Tree(s.pid)) > 1 && !l.Runs
			})
			for range 100 {
				require.Empty(t, Look(s.pid).Waits, s.describe())
			}
		})
	}
}
