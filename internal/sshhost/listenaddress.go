package sshhost

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/sshconn"
)

// Addr implements net.Listener. It returns where the server listens, which may not be the address
// that was asked for.
func (l *listener) Addr() net.Addr {
	if l.addr != nil {
		return l.addr
	}
	return l.Forward.Addr()
}

// checkAddress finds out where the server listens. OpenSSH takes only the port from the request,
// and does not say so. With GatewayPorts no it listens on loopback, with GatewayPorts yes on all
// addresses. If the request is for all addresses and the server listens on loopback, Addr returns
// loopback. If the request is for another address, checkAddress returns an error, so that no
// service is where its owner does not expect it.
func (l *listener) checkAddress(ctx context.Context, network string) error {
	host, service, err := net.SplitHostPort(l.Forward.Addr().String())
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return err
	}
	ip, anyLoopback := netip.IPv6Unspecified(), host == "localhost"
	if host != "" && !anyLoopback {
		if ip, err = netip.ParseAddr(host); err != nil {
			return nil // a name, which only the server can resolve
		}
	}
	at, err := l.host.listeningAt(ctx, uint16(port))
	if err != nil {
		return err
	}
	everywhere := slices.ContainsFunc(at, netip.Addr.IsUnspecified)
	loopback := slices.IndexFunc(at, netip.Addr.IsLoopback)
	unavailable := os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)
	switch {
	case len(at) == 0: // there is no /proc
	case !anyLoopback && (slices.Contains(at, ip) || ip.IsUnspecified() && everywhere):
	case everywhere:
		return fmt.Errorf("%w: the server listens on all its addresses, whatever the request "+
			"(GatewayPorts yes): to listen on all, leave the host empty, as in \":%d\"",
			unavailable, port)
	case loopback < 0: // only other listeners on this port are seen
	case anyLoopback || ip.IsUnspecified():
		l.addr = sshconn.Address(network, netip.AddrPortFrom(at[loopback], uint16(port)).String())
	default:
		return fmt.Errorf("%w: the server listens only on its loopback address, whatever the "+
			"request (GatewayPorts no)", unavailable)
	}
	return nil
}

// listeningAt returns the addresses of all listeners on a TCP port. If there is no /proc, it
// returns none. /proc prints an address as words in the machine's byte order: proc(5).
func (h *Host) listeningAt(ctx context.Context, port uint16) ([]netip.Addr, error) {
	const listening = `
hex=$(printf %04X "$1")
cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r n local remote state rest; do
	case $local.$state in *:$hex.0A) echo "${local%:*}";; esac
done`
	out, _, err := h.script(ctx, listening, fmt.Sprint(port))
	if err != nil {
		return nil, err
	}
	var at []netip.Addr
	for line := range strings.Lines(out) {
		words, err := hex.DecodeString(strings.TrimSpace(line))
		if err != nil || len(words)%4 != 0 {
			continue
		}
		for i := 0; i < len(words); i += 4 {
			binary.BigEndian.PutUint32(words[i:], binary.LittleEndian.Uint32(words[i:]))
		}
		if ip, ok := netip.AddrFromSlice(words); ok {
			at = append(at, ip)
		}
	}
	return at, nil
}
