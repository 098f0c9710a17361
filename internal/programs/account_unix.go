//go:build linux || darwin || freebsd || netbsd || openbsd

package programs

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// apply makes cmd run as the account.
func (a *Account) apply(cmd *exec.Cmd) {
	if a != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.Credential()}
	}
}

// Credential returns the credential of a program that runs as the account; nil for a nil Account.
func (a *Account) Credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	c := &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID)}
	for _, id := range a.Groups {
		c.Groups = append(c.Groups, uint32(id))
	}
	return c
}

// Give gives the streams of a program that is started with c to its user; if c is nil, it does
// nothing. A terminal's end, which the output streams are, gets a new owner as at a login:
// otherwise the user could not open it by name. For pipes it makes /dev/stdin, /dev/stdout and
// /dev/stderr work; if that fails (without CAP_CHOWN), the program does without.
func Give(c *syscall.Credential, streams [3]*os.File, terminal bool) error {
	switch {
	case c == nil:
	case terminal:
		// Not streams[0]: it may be the pipe of a shell's commands, which only the shell may use.
		if err := streams[1].Chown(int(c.Uid), -1); err != nil {
			return fmt.Errorf("give the terminal to uid %d: %w", c.Uid, err)
		}
	default:
		for _, f := range streams {
			f.Chown(int(c.Uid), -1)
		}
	}
	return nil
}
