package procfs

import "golang.org/x/sys/unix"

// nativeCalls holds the calls that only 64-bit programs of this architecture have.
var nativeCalls = map[int]callKind{unix.SYS_POLL: pollCall, unix.SYS_SELECT: selectCall,
	unix.SYS_EPOLL_WAIT: epollCall, unix.SYS_ACCEPT: receiveCall, unix.SYS_PAUSE: signalCall}

// calls32 holds the calls of 32-bit programs. Source: arch/x86/entry/syscalls/syscall_32.tbl of the
// kernel.
var calls32 = map[int]callKind{
	// read, readv, pread64, preadv, preadv2
	3: readCall, 145: readCall, 180: readCall, 333: readCall, 378: readCall,
	313: readCall, 187: sendfileCall, 239: sendfileCall, // splice, sendfile, sendfile64
	168: pollCall, 309: ppollCall, 414: ppollCall, // poll, ppoll, ppoll_time64
	142: selectCall, 308: selectCall, 413: selectCall, // _newselect, pselect6, pselect6_time64
	256: epollCall, 319: epollCall, 441: epollPwait2Call, // epoll_wait, epoll_pwait, epoll_pwait2
	371: receiveCall, 372: receiveCall, 337: receiveCall, // recvfrom, recvmsg, recvmmsg
	417: receiveCall, 364: receiveCall, // recvmmsg_time64, accept4
	4: writeCall, 146: writeCall, 369: writeCall, 370: writeCall, // write, writev, sendto, sendmsg
	162: sleepCall, 267: clockSleepCall, 407: clockSleepCall, // nanosleep, clock_nanosleep, _time64
	240: futexCall, 422: futexCall, 455: futexWaitCall, // futex, futex_time64, futex_wait
	449: futexWaitvCall,                            // futex_waitv
	7:   childCall, 114: childCall, 284: childCall, // waitpid, wait4, waitid
	29: signalCall, 72: signalCall, 179: signalCall, // pause, sigsuspend, rt_sigsuspend
	177: timedSignalCall, 421: timedSignalCall, // rt_sigtimedwait, rt_sigtimedwait_time64
	0: restartCall,
}
