package procfs

import "golang.org/x/sys/unix"

// native has the calls that only this architecture's 64-bit programs have.
var native = map[int]kind{unix.SYS_POLL: polls, unix.SYS_SELECT: selects,
	unix.SYS_EPOLL_WAIT: epolls}

// narrow has the calls of 32-bit programs: arch/x86/entry/syscalls/syscall_32.tbl of the kernel.
var narrow = map[int]kind{
	// read, readv, pread64, preadv, preadv2
	3: reads, 145: reads, 180: reads, 333: reads, 378: reads,
	313: reads, 187: sends, 239: sends, // splice, sendfile, sendfile64
	168: polls, 309: ppolls, 414: ppolls, // poll, ppoll, ppoll_time64
	142: selects, 308: selects, 413: selects, // _newselect, pselect6, pselect6_time64
	256: epolls, 319: epolls, 441: epollsUntil, // epoll_wait, epoll_pwait, epoll_pwait2
	0: restarts,
}
