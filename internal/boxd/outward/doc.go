// Package outward brings the connections that programs of a box make to the outside to whoever
// serves the box's way out. It needs no privileges and no cooperation of the programs: no proxy
// variable, no library.
//
// # Connections
//
// One thread of boxd has a seccomp filter, and all programs are forked from it. The filter makes
// the kernel ask boxd about each connect (SECCOMP_RET_USER_NOTIF). boxd looks at the address, and
// if it is outside, writes another one over it in the program's memory: 127.128.0.0 plus a number,
// where boxd listens. Then the kernel goes on with the call. The number stands for the destination
// and the process. So the program's own socket is connected, with its options and its place in an
// epoll set, and a second connect with the same memory goes the same way.
//
// boxd answers each question at once, and never waits for the network. If nobody serves the way
// out, connect fails with ECONNREFUSED.
//
// # Names
//
// A name server on 127.0.0.1:53 answers each question for an IPv4 address with one of
// 127.64.0.0/10, which stands for the name. It asks nobody. A connection to such an address is for
// that name.
//
// # What it is not
//
// The filter is no boundary. A program may change its memory after boxd has looked at it, or make
// system calls that the filter does not know. Then it gets what the kernel would have given it. In
// a box without a network that is nothing.
package outward
