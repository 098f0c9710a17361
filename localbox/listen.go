package localbox

import (
	"context"
	"net"
	"os"

	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

var _ shellbox.ListenHost = (*host)(nil)

// Listen implements shellbox.ListenHost.
func (h *host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if network != "unix" {
		l, err := new(net.ListenConfig).Listen(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return programs.Listener{Listener: l}, nil
	}
	path, err := expandHome(address)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{Control: private}).Listen(ctx, network, path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, &net.OpError{Op: "listen", Net: network, Addr: l.Addr(), Err: err}
	}
	return programs.Listener{Listener: l}, nil
}
