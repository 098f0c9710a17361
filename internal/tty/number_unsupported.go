//go:build !linux

package tty

import "syscall"

// Number returns 0: only on systems with Linux's /proc do terminals have numbers.
func Number(syscall.Conn) int { return 0 }
