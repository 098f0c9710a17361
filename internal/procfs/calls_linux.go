package procfs

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A sysCall is a system call in which a thread is blocked.
type sysCall struct {
	Number int // depends on the processor's architecture
	Args   [6]uint64
}

// A callKind says how a thread waits, and which arguments name what it waits for: descriptors, and
// the time limit.
type callKind uint8

const (
	otherCall    callKind = iota
	readCall              // reads from the descriptor in argument 0
	receiveCall           // as readCall, but the descriptor is a socket
	sendfileCall          // reads from the descriptor in argument 1
	writeCall             // writes to the descriptor in argument 0
	pollCall              // argument 0: address of the pollfds, 1: their number, 2: milliseconds
	ppollCall             // as pollCall, but argument 2 is the address of a timespec
	// argument 0: number of bits, 1 to 3: addresses of the sets, 4: of a timeval or timespec
	selectCall
	epollCall       // argument 0: the epoll's descriptor, 3: milliseconds
	epollPwait2Call // as epollCall, but argument 3 is the address of a timespec
	sleepCall       // argument 0: address of a timespec
	clockSleepCall  // argument 0: a clock, 1: flags, 2: address of a timespec
	futexCall       // argument 1: the operation, 3: address of a timespec
	futexWaitCall   // argument 4: address of a timespec, 5: a clock
	futexWaitvCall  // argument 3: address of a timespec, 4: a clock
	childCall       // waits until a child ends
	signalCall      // waits for a signal
	timedSignalCall // as signalCall; argument 2: address of a timespec
	// A signal interrupted the call, and the kernel restarts it. The arguments are those of the
	// original call (ERESTART_RESTARTBLOCK).
	restartCall
)

// genericCalls holds the calls that every architecture has. The numbers are this architecture's.
var genericCalls = map[int]callKind{
	unix.SYS_READ: readCall, unix.SYS_READV: readCall, unix.SYS_PREAD64: readCall,
	unix.SYS_PREADV: readCall, unix.SYS_PREADV2: readCall, unix.SYS_SPLICE: readCall,
	unix.SYS_RECVFROM: receiveCall, unix.SYS_RECVMSG: receiveCall, unix.SYS_RECVMMSG: receiveCall,
	unix.SYS_ACCEPT4:  receiveCall,
	unix.SYS_SENDFILE: sendfileCall,
	unix.SYS_WRITE:    writeCall, unix.SYS_WRITEV: writeCall, unix.SYS_SENDTO: writeCall,
	unix.SYS_SENDMSG: writeCall,
	unix.SYS_PPOLL:   ppollCall, unix.SYS_PSELECT6: selectCall, unix.SYS_EPOLL_PWAIT: epollCall,
	unix.SYS_EPOLL_PWAIT2: epollPwait2Call,
	unix.SYS_NANOSLEEP:    sleepCall, unix.SYS_CLOCK_NANOSLEEP: clockSleepCall,
	unix.SYS_FUTEX: futexCall, sysFutexWait: futexWaitCall, unix.SYS_FUTEX_WAITV: futexWaitvCall,
	unix.SYS_WAIT4: childCall, unix.SYS_WAITID: childCall,
	unix.SYS_RT_SIGSUSPEND: signalCall, unix.SYS_RT_SIGTIMEDWAIT: timedSignalCall,
	unix.SYS_RESTART_SYSCALL: restartCall,
}

// sysFutexWait is the number of futex_wait, which is the same for every architecture. Since Linux
// 6.7.
const sysFutexWait = 455

// kindOf returns the kind of a call. It calls is64Bit, which reports whether the program is a
// 64-bit program, only if the kind depends on that.
func kindOf(call *sysCall, is64Bit func() bool) callKind {
	k64, ok := nativeCalls[call.Number]
	if !ok {
		k64 = genericCalls[call.Number]
	}
	k32 := calls32[call.Number]
	if k64 == k32 || is64Bit() {
		return k64
	}
	return k32
}

// restarted returns the kind of the call that the kernel has restarted. function is the kernel's
// function in which the thread is blocked; "0" means that it is not shown, and then the call is
// taken for a poll.
func restarted(function string) callKind {
	switch {
	case function == "0" || strings.Contains(function, "poll"):
		return pollCall
	case strings.Contains(function, "futex"):
		return futexCall
	case strings.Contains(function, "nanosleep"):
		return sleepCall
	}
	return otherCall
}

// hasFiles reports whether the arguments of a call of that kind name descriptors.
func (k callKind) hasFiles() bool { return k >= readCall && k <= epollPwait2Call }

// waitsForSignal reports whether a call of that kind waits for a signal, or the end of a child.
func (k callKind) waitsForSignal() bool {
	return k == childCall || k == signalCall || k == timedSignalCall
}

// parseCall parses the words of /proc/PID/syscall. It returns nil if the thread is in no system
// call: the file says "running", or -1 in place of the number.
func parseCall(words []string) *sysCall {
	call := new(sysCall)
	if len(words) <= len(call.Args) {
		return nil
	}
	var err error
	if call.Number, err = strconv.Atoi(words[0]); err != nil || call.Number < 0 {
		return nil
	}
	for i := range call.Args {
		if call.Args[i], err = strconv.ParseUint(words[1+i], 0, 64); err != nil {
			return nil
		}
	}
	return call
}
