//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package localbox

import (
	"errors"
	"os/exec"

	"github.com/sandshell/sandshell/sandbox/shellbox"
)

const supported = false

func startTerminal(*exec.Cmd, *shellbox.Terminal) (shellbox.Process, error) {
	return nil, errors.ErrUnsupported
}

func startPipes(*exec.Cmd) (shellbox.Process, error) { return nil, errors.ErrUnsupported }
