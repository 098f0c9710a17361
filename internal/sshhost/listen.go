package sshhost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

var _ shellbox.ListenHost = (*Host)(nil)

// A listener is an address on which the server listens.
type listener struct {
	*sshconn.Forward
	host   *Host
	socket string   // the socket's path; "" for TCP
	addr   net.Addr // where the server listens; nil if it is the address that was asked for
	closed atomic.Bool
}

// Listen implements shellbox.ListenHost by SSH's remote forwarding.
func (h *Host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	fail := func(err error) (net.Listener, error) {
		return nil, &net.OpError{Op: "listen", Net: network,
			Addr: sshconn.Address(network, address), Err: h.explain(ctx, err)}
	}
	l := &listener{host: h}
	if network == "unix" {
		var err error
		if address, err = h.socketPath(ctx, address); err != nil {
			return fail(err)
		}
		l.socket = address
	}
	var err error
	l.Forward, err = h.first().Listen(ctx, network, address, h.lostError, l.remove)
	var refused *sshconn.RefusedError
	if errors.As(err, &refused) {
		return fail(h.explainRefusal(ctx, network, address, err))
	}
	if err != nil {
		return fail(err)
	}
	if network != "unix" {
		if err := l.checkAddress(ctx, network); err != nil {
			l.Close()
			return fail(err)
		}
	}
	return l, nil
}

// Close implements net.Listener. It removes the socket, which OpenSSH leaves behind.
func (l *listener) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	defer l.remove()
	return l.Forward.Close()
}

// remove removes the socket. The server no longer listens on it.
func (l *listener) remove() {
	if l.socket == "" || l.host.first().Ended() {
		return
	}
	ctx, done := context.WithTimeout(context.Background(), removeLimit)
	defer done()
	l.host.script(ctx, `[ ! -S "$1" ] || rm -f -- "$1"`, l.socket)
}

// removeLimit bounds the removal of a socket.
const removeLimit = 5 * time.Second

// socketPath returns the path of a socket. A leading ~ is the user's home directory.
func (h *Host) socketPath(ctx context.Context, p string) (string, error) {
	if !strings.HasPrefix(p, "~") {
		return path.Clean(p), nil
	}
	home, status, err := h.script(ctx, `printf %s "$HOME"`)
	if err != nil {
		return "", fmt.Errorf("find the home directory: %w", err)
	}
	if status != 0 || !path.IsAbs(home) {
		return "", fmt.Errorf("the user has no home directory: HOME is %q", home)
	}
	return path.Join(home, p[1:]), nil
}

// explainRefusal finds out why the server refuses to listen. The server does not say. On Linux,
// /proc shows other listeners on a port.
func (h *Host) explainRefusal(ctx context.Context, network, address string, refused error) error {
	const socket = `[ -e "$1" ] || [ -L "$1" ] && exit 2; ` +
		`d=${1%/*}; d=${d:-/}; [ -e "$d" ] || exit 3; [ -d "$d" ] || exit 4; [ -w "$d" ] || exit 5`
	const port = `
[ "$1" -lt 1024 ] && [ "$(id -u)" != 0 ] && exit 5
hex=$(printf %04X "$1")
cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r n local remote state rest; do
	case $local.$state in *:$hex.0A) exit 2;; esac
done`
	why := map[int]syscall.Errno{2: syscall.EADDRINUSE, 3: syscall.ENOENT, 4: syscall.ENOTDIR,
		5: syscall.EACCES}
	script, argument := socket, address
	if network != "unix" {
		_, service, _ := net.SplitHostPort(address)
		if n, err := strconv.Atoi(service); err != nil || n == 0 {
			return addHint(refused)
		}
		script, argument = port, service
	} else if len(address) > pathMax {
		return os.NewSyscallError("bind", syscall.EINVAL)
	}
	_, status, err := h.script(ctx, script, argument)
	if errno, known := why[status]; err == nil && known {
		return os.NewSyscallError("bind", errno)
	}
	return addHint(refused)
}

// pathMax is the greatest length of a socket's path on Linux (sun_path, without the NUL at its
// end). Other systems allow less.
const pathMax = 107

// addHint adds to the server's refusal what may be its cause.
func addHint(refused error) error {
	return fmt.Errorf("%w: check that the server has this address, and check AllowTcpForwarding, "+
		"AllowStreamLocalForwarding and PermitListen in its sshd_config", refused)
}

// script runs a script of sh, and returns its standard output and status.
func (h *Host) script(ctx context.Context, script string,
	args ...string) (output string, status int, err error) {
	p, err := h.Start(ctx, shellbox.Program{Args: append([]string{"/bin/sh", "-c", script, "sh"},
		args...)})
	if err != nil {
		return "", 0, err
	}
	defer p.Close()
	defer context.AfterFunc(ctx, func() { p.Close() })()
	p.Stdin().Close()
	out, err := bounded.ReadAll(p.Stdout(), "the script's output", 64<<10)
	if err != nil {
		return "", 0, err
	}
	s, err := p.Wait()
	return string(out), s.Code, err
}
