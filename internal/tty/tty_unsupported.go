//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package tty

import "syscall"

// Echoes returns false: this system has no such terminals.
func Echoes(syscall.Conn) bool { return false }

// Readable returns false: this system has no such terminals.
func Readable(syscall.Conn) bool { return false }
