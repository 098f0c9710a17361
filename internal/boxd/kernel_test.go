//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// beforePidfdsIn is the environment variable that makes boxd see a kernel without SO_PEERPIDFD,
// such as Linux before 6.5 or gVisor.
const beforePidfdsIn = "SANDSHELL_TEST_BEFORE_PEERPIDFD"

// beforePidfds makes the kernel refuse SO_PEERPIDFD to this process.
func beforePidfds() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_GETSOCKOPT, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16 + 2*8}, // .args[2]
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SO_PEERPIDFD, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOPROTOOPT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// If the kernel has no pidfds of peers, boxd does not take another descriptor for one and close it.
func TestBeforePeerPidfds(t *testing.T) {
	b := startBox(t, beforePidfdsIn+"=1")
	b.guest()
	stdin, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", b.pid))
	if err != nil || !strings.HasPrefix(stdin, "pipe:") {
		t.Errorf("boxd's standard input is %q, %v", stdin, err)
	}
}
