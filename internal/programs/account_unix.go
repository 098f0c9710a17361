//go:build linux || darwin || freebsd || netbsd || openbsd

package programs

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// apply has cmd run as the account.
func (a *Account) apply(cmd *exec.Cmd) {
	if a != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.Credential()}
	}
}

// Credential returns what a program that runs as the account gets; nil for a nil Account.
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

// Give makes the streams of a program that is started with c the property of its user; of no user
// if c is nil. A terminal's end, of which streams are the outputs, becomes so as at a login: else
// the user could not open it by its name. Of pipes it makes /dev/stdin, /dev/stdout and /dev/stderr
// work; where it cannot be (without CAP_CHOWN), the program does without.
func Give(c *syscall.Credential, streams [3]*os.File, terminal bool) error {
	switch {
	case c == nil:
	case terminal:
		// the input may be the pipe of a shell's commands, which is none of the user's business
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
