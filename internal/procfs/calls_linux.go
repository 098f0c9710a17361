package procfs

import "golang.org/x/sys/unix"

// A sysCall is a system call in which a thread is blocked: its number, which depends on the
// processor's architecture, and its arguments.
type sysCall struct {
	Number int
	Args   [6]uint64
}

// A kind says how a system call waits for input: where its arguments name the descriptors, and
// where the time limit.
type kind uint8

const (
	other       kind = iota
	reads            // of the descriptor in argument 0
	sends            // from the descriptor in argument 1
	polls            // pollfds at argument 0, their number in 1, milliseconds in 2
	ppolls           // the same with a timespec at argument 2
	selects          // the number of bits in argument 0, sets at 1 to 3, a timeval or timespec at 4
	epolls           // the set's descriptor in argument 0, milliseconds in 3
	epollsUntil      // the same with a timespec at argument 3
	// a call that a signal interrupted, with its own arguments: poll among others
	// (ERESTART_RESTARTBLOCK)
	restarts
)

// generic has the calls that every architecture has, by its own numbers.
var generic = map[int]kind{
	unix.SYS_READ: reads, unix.SYS_READV: reads, unix.SYS_PREAD64: reads, unix.SYS_PREADV: reads,
	unix.SYS_PREADV2: reads,
	unix.SYS_SPLICE:  reads, unix.SYS_SENDFILE: sends, unix.SYS_PPOLL: ppolls,
	unix.SYS_PSELECT6: selects, unix.SYS_EPOLL_PWAIT: epolls,
	unix.SYS_EPOLL_PWAIT2: epollsUntil, unix.SYS_RESTART_SYSCALL: restarts,
}

// kindOf returns the kind of a call. wide is called when that depends on whether the program is a
// 64-bit one.
func kindOf(call *sysCall, wide func() bool) kind {
	k64, ok := native[call.Number]
	if !ok {
		k64 = generic[call.Number]
	}
	k32 := narrow[call.Number]
	if k64 == k32 || wide() {
		return k64
	}
	return k32
}

// limited reports whether a call of that kind ends by itself after some time.
func (k kind) limited(call *sysCall) bool {
	switch k {
	case polls, restarts:
		return int32(call.Args[2]) >= 0
	case ppolls:
		return call.Args[2] != 0
	case selects:
		return call.Args[4] != 0
	case epolls:
		return int32(call.Args[3]) >= 0
	case epollsUntil:
		return call.Args[3] != 0
	}
	return false
}
