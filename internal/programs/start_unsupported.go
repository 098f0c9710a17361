//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package programs

import (
	"errors"
	"os"
	"os/exec"
)

func start(*exec.Cmd, [3]*os.File, bool) error { return errors.ErrUnsupported }
