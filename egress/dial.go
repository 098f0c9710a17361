package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

const dialTime = 20 * time.Second

// A route is what decides where a request goes, beside its host.
type route struct {
	to      string
	private bool
}

// A dialer dials servers outside.
type dialer struct {
	net.Dialer
	to string
}

func (x *Exit) dialer(r *Rule) *dialer {
	d := &dialer{net.Dialer{Timeout: dialTime, Resolver: x.gate.config.Resolver}, r.To}
	if !r.Private && r.To == "" {
		// Here the address is the one that is really dialed: no name server can change it.
		d.Control = func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || !public(ap.Addr()) {
				return errNotPublic
			}
			return nil
		}
	}
	return d
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d.to != "" {
		address = d.to
	}
	return d.DialContext(ctx, network, address)
}

// transport returns the transport for the requests that a rule allows. No two boxes share
// connections, and no two routes.
func (x *Exit) transport(r *Rule) *http.Transport {
	key := route{r.To, r.Private}
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.transports[key]; t != nil {
		return t
	}
	t := &http.Transport{
		DialContext:            x.dialer(r).dial,
		TLSClientConfig:        &tls.Config{RootCAs: x.gate.config.Roots},
		TLSHandshakeTimeout:    dialTime,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // the box gets what the server sends
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: 256 << 10,
		ExpectContinueTimeout:  time.Second,
		WriteBufferSize:        32 << 10,
		ReadBufferSize:         32 << 10,
	}
	x.transports[key] = t
	return t
}

// explain says to the box why a server could not be reached. It does not say what is this machine's
// own affair, such as its name servers.
func explain(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var host x509.HostnameError
	var errno syscall.Errno
	var timeout net.Error
	switch {
	case errors.Is(err, errNotPublic):
		return "it has no public address, and the rule does not allow private ones"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "there is no such host"
	case errors.As(err, &dns):
		return "its name cannot be looked up"
	case errors.As(err, &host):
		return strings.TrimPrefix(host.Error(), "x509: ")
	case errors.As(err, &certificate):
		return "its certificate is not valid: " +
			strings.TrimPrefix(certificate.Err.Error(), "x509: ")
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, errBytes):
		return errBytes.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("it does not answer within %v", dialTime)
	}
	return "it cannot be reached, or does not speak HTTP"
}
