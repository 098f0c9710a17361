package procfs

import "golang.org/x/sys/unix"

// nativeCalls holds the calls that only 64-bit programs of this architecture have.
var nativeCalls = map[int]callKind{unix.SYS_ACCEPT: receiveCall}

// calls32 holds the calls of 32-bit programs. Source: arch/arm/tools/syscall.tbl of the kernel.
var calls32 = map[int]callKind{
	// read, readv, pread64, preadv, preadv2
	3: readCall, 145: readCall, 180: readCall, 361: readCall, 392: readCall,
	340: readCall, 187: sendfileCall, 239: sendfileCall, // splice, sendfile, sendfile64
	168: pollCall, 336: ppollCall, 414: ppollCall, // poll, ppoll, ppoll_time64
	142: selectCall, 335: selectCall, 413: selectCall, // _newselect, pselect6, pselect6_time64
	252: epollCall, 346: epollCall, 441: epollPwait2Call, // epoll_wait, epoll_pwait, epoll_pwait2
	285: receiveCall, 292: receiveCall, 297: receiveCall, // accept, recvfrom, recvmsg
	365: receiveCall, 417: receiveCall, 366: receiveCall, // recvmmsg, recvmmsg_time64, accept4
	4: writeCall, 146: writeCall, 290: writeCall, 296: writeCall, // write, writev, sendto, sendmsg
	162: sleepCall, 265: clockSleepCall, 407: clockSleepCall, // nanosleep, clock_nanosleep, _time64
	240: futexCall, 422: futexCall, 455: futexWaitCall, // futex, futex_time64, futex_wait
	449: futexWaitvCall,            // futex_waitv
	114: childCall, 280: childCall, // wait4, waitid
	29: signalCall, 72: signalCall, 179: signalCall, // pause, sigsuspend, rt_sigsuspend
	177: timedSignalCall, 421: timedSignalCall, // rt_sigtimedwait, rt_sigtimedwait_time64
	0: restartCall,
}
