//go:build linux

package outward

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The numbers of connect, by architecture: arch/x86/entry/syscalls/syscall_64.tbl of the kernel,
// and include/uapi/asm-generic/unistd.h.
const (
	connectAMD64 = 42
	connectARM64 = 203
)

// Offsets in struct seccomp_data. The low half of an argument comes first on both architectures.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetLength = 16 + 2*8 // the third argument
)

// What connect's third argument may be.
const (
	shortest  = unix.SizeofSockaddrInet4 // shorter ones are no address of IPv4 or IPv6
	longest   = 128                      // struct sockaddr_storage
	wholeUnix = unix.SizeofSockaddrUnix  // how the C library asks nscd
)

// filterFor returns the program that makes the kernel ask about connect. It lets through other
// system calls, those of other architectures (the machine's 32-bit one), and addresses that by
// their length are those of Unix sockets.
func filterFor(goarch string) ([]unix.SockFilter, error) {
	var arch, connect uint32
	switch goarch {
	case "amd64":
		arch, connect = unix.AUDIT_ARCH_X86_64, connectAMD64
	case "arm64":
		arch, connect = unix.AUDIT_ARCH_AARCH64, connectARM64
	default:
		return nil, fmt.Errorf("no system calls are known for %s", goarch)
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(test uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	answer := func(k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
	}
	return []unix.SockFilter{
		load(offsetArch),
		jump(unix.BPF_JEQ, arch, 0, 6),
		load(offsetNumber),
		jump(unix.BPF_JEQ, connect, 0, 4),
		load(offsetLength),
		jump(unix.BPF_JGE, shortest, 0, 2),
		jump(unix.BPF_JEQ, wholeUnix, 1, 0),
		answer(unix.SECCOMP_RET_USER_NOTIF),
		answer(unix.SECCOMP_RET_ALLOW),
	}, nil
}

// install gives this thread the filter, for good, and returns the descriptor on which the kernel
// asks. What the thread forks has the filter too. killable is 0 or
// SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, which kernels before 5.19 have not.
func install(killable uintptr) (int, error) {
	program, err := filterFor(runtime.GOARCH)
	if err != nil {
		return -1, err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return -1, err
	}
	if err := checkKernel(unix.ByteSliceToString(name.Release[:])); err != nil {
		return -1, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("give up new privileges: %w", err)
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	set := func(flags uintptr) (int, unix.Errno) {
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
			unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|flags, uintptr(unsafe.Pointer(&fprog)))
		return int(fd), errno
	}
	fd, errno := set(killable)
	if errno == unix.EINVAL {
		fd, errno = set(0)
	}
	if errno != 0 {
		return -1, fmt.Errorf("the kernel refuses a seccomp filter that asks (%w): a sandboxed "+
			"kernel such as gVisor's has none, and a seccomp profile may forbid it", errno)
	}
	unix.CloseOnExec(fd)
	return fd, nil
}

// checkKernel returns an error if the kernel has no SECCOMP_USER_NOTIF_FLAG_CONTINUE. Such a kernel
// would take the filter.
func checkKernel(release string) error {
	var major, minor int
	_, err := fmt.Sscanf(release, "%d.%d", &major, &minor)
	if err != nil || major < 5 || major == 5 && minor < 5 {
		return fmt.Errorf("the kernel says that it is %s, as gVisor's does: Linux 5.5 or later "+
			"is needed", release)
	}
	return nil
}
