//go:build !linux

package tty

import "syscall"

// Number returns 0: terminals have numbers where there is a /proc like Linux's.
func Number(syscall.Conn) int { return 0 }
