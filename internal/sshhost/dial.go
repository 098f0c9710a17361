package sshhost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// Dial implements shellbox.Host; see sshconn.Conn.Dial. After the connection to the server has
// ended, reads and writes return a *sandbox.LostError.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	explain := func(err error) error {
		if network == "unix" {
			err = h.socketRefusal(ctx, address, err)
		}
		return h.explain(ctx, err)
	}
	return h.first().Dial(ctx, network, address, explain, h.lostError)
}

// socketRefusal finds out why the server cannot connect to a socket. OpenSSH says only "open
// failed".
func (h *Host) socketRefusal(ctx context.Context, path string, err error) error {
	var open *ssh.OpenChannelError
	if !errors.As(err, &open) || open.Message != "open failed" {
		return sshconn.Refusal(err)
	}
	p, startErr := h.Start(ctx, shellbox.Program{Args: []string{
		"/bin/sh", "-c", `[ -e "$1" ] || exit 2; [ -S "$1" ] || exit 3; [ -w "$1" ] || exit 4`,
		"sh", path}})
	if startErr != nil {
		return sshconn.Refusal(err)
	}
	defer p.Close()
	status, err := p.Wait()
	if err != nil {
		return sshconn.Refusal(open)
	}
	switch status.Code {
	case 2:
		return os.NewSyscallError("connect", syscall.ENOENT)
	case 3:
		return errors.New("not a socket")
	case 4:
		return os.NewSyscallError("connect", syscall.EACCES)
	}
	return fmt.Errorf("%w (or the server does not forward to sockets: AllowStreamLocalForwarding)",
		os.NewSyscallError("connect", syscall.ECONNREFUSED))
}
