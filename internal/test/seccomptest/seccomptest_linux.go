// Package seccomptest makes system calls fail in tests, as an older kernel, gVisor or a container
// runtime's filter does.
package seccomptest

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Refuse makes these system calls fail with errno until the process ends: in the whole process, or
// only on the calling thread, to which the caller has locked its goroutine.
func Refuse(errno unix.Errno, wholeProcess bool, calls ...uintptr) error {
	// seccomp_data.nr
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for _, call := range calls {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(call), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K,
				K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K,
		K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	var flags uintptr
	if wholeProcess {
		flags = unix.SECCOMP_FILTER_FLAG_TSYNC
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}
