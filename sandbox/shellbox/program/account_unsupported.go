//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package program

import "os/exec"

func (a *Account) apply(*exec.Cmd) {}
