//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package tty

import "syscall"

// Echoes reports whether the terminal echoes what is typed. This system has no such terminals.
func Echoes(syscall.Conn) bool { return false }

// Readable reports whether the terminal has shown something that nobody has read yet. This system
// has no such terminals.
func Readable(syscall.Conn) bool { return false }
