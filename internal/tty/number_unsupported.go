//go:build !linux

package tty

import "syscall"

// Number returns 0: terminals have numbers only on Linux.
func Number(syscall.Conn) int { return 0 }
