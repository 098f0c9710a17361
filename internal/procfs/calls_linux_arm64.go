package procfs

// native has the calls that only this architecture's 64-bit programs have.
var native map[int]kind

// narrow has the calls of 32-bit programs: arch/arm/tools/syscall.tbl of the kernel.
var narrow = map[int]kind{
	// read, readv, pread64, preadv, preadv2
	3: reads, 145: reads, 180: reads, 361: reads, 392: reads,
	340: reads, 187: sends, 239: sends, // splice, sendfile, sendfile64
	168: polls, 336: ppolls, 414: ppolls, // poll, ppoll, ppoll_time64
	142: selects, 335: selects, 413: selects, // _newselect, pselect6, pselect6_time64
	252: epolls, 346: epolls, 441: epollsUntil, // epoll_wait, epoll_pwait, epoll_pwait2
	0: restarts,
}
