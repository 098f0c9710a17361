package boxclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/internal/wire"
	"golang.org/x/crypto/ssh"
)

// reach makes a connection: with authorize, as the new owner; else as the owner that this host already is.
func (h *Host) reach(ctx context.Context, authorize bool) (*sshconn.Conn, error) {
	streams, err := h.Place.Join(ctx)
	if err != nil {
		return nil, err
	}
	fail := func(err error) error {
		streams.Close()
		if ctx.Err() != nil {
			return ctxerr.Of(ctx)
		}
		err = fmt.Errorf("reach boxd: %w", err)
		if said := streams.Said(); said != "" {
			err = fmt.Errorf("%w; it said %q", err, said)
		}
		return err
	}
	if authorize {
		stop := context.AfterFunc(ctx, func() { streams.Close() })
		key, err := h.authorize(streams, wire.Authorize)
		if !stop() && err == nil {
			err = ctxerr.Of(ctx)
		}
		if err != nil {
			return nil, fail(err)
		}
		h.hostKey = key
	}
	config := &ssh.ClientConfig{
		User: "sandshell", Auth: []ssh.AuthMethod{ssh.PublicKeys(h.signer)},
		HostKeyCallback: h.checkHostKey, HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	}
	// No byte leaves the machine, or the engine's own TLS connection: the shortest key exchange will do.
	config.KeyExchanges = []string{ssh.KeyExchangeCurve25519}
	config.Ciphers = sshconn.PreferredCiphers()
	conn, err := sshconn.Handshake(ctx, streams, "box", config, h.link.announced)
	if err != nil {
		return nil, fail(err)
	}
	return conn, nil
}

// errAnother says that another boxd answers: each makes a key of its own when it starts.
var errAnother = errors.New("another boxd answers than before")

func (h *Host) checkHostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	if !bytes.Equal(key.Marshal(), h.hostKey.Marshal()) {
		return errAnother
	}
	return nil
}

// adopts reports whether a box that was restarted is nobody's, and makes it this host's. Another program may have attached to it, so that only boxd's own word counts: it
// answers, and is waited for longer than one that is perhaps gone.
func (h *Host) adopts(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.Attempt)
	defer cancel()
	streams, err := h.Place.Join(ctx)
	if err != nil {
		return false
	}
	defer streams.Close()
	stop := context.AfterFunc(ctx, func() { streams.Close() })
	defer stop()
	_, err = h.authorize(streams, wire.Adopt)
	return err == nil
}

// answerMax is how long an answer of boxd may be: a key, or why there is none.
const answerMax = 4 << 10

// authorize tells boxd the owner's key, and learns boxd's.
func (h *Host) authorize(streams io.ReadWriter, how string) (ssh.PublicKey, error) {
	if _, err := fmt.Fprintf(streams, "%s%s", how, ssh.MarshalAuthorizedKey(h.signer.PublicKey())); err != nil {
		return nil, err
	}
	line, err := bounded.BareLine(streams, "the answer of boxd", answerMax)
	if err != nil {
		return nil, err
	}
	text, err := wire.ParseAuthorized(line)
	if err != nil {
		return nil, err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	return key, err
}

// refused reports whether boxd has refused this host because it has another owner now.
func refused(err error) bool {
	var auth *ssh.ServerAuthError
	return errors.As(err, &auth) || strings.Contains(err.Error(), "unable to authenticate")
}
