//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package programs

import "os/exec"

func (a *Account) apply(*exec.Cmd) {}
