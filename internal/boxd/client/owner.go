package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sshconn"
	"golang.org/x/crypto/ssh"
)

// openConn makes a connection: with claims, as the new owner; else as the owner that this host already
// is.
func (h *Host) openConn(ctx context.Context, claims bool) (*sshconn.Conn, error) {
	control, beside := h.Place.(Controller)
	beside = beside && claims
	claimed := make(chan error, 1)
	if beside { // meanwhile: to execute boxd join takes an engine much longer
		claiming, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		defer func() { cancel(); <-done }()
		go func() {
			defer close(done)
			_, err := h.claimOnControl(claiming, control, false)
			claimed <- err
		}()
	}
	streams, err := h.Place.Join(ctx)
	if err != nil {
		return nil, err
	}
	fail := func(err error) error {
		streams.Close()
		if err := ctxerr.Of(ctx); err != nil {
			return err
		}
		err = fmt.Errorf("reach boxd: %w", err)
		if said := streams.Said(); said != "" {
			err = fmt.Errorf("%w; it said %q", err, said)
		}
		return err
	}
	switch {
	case beside:
		err = <-claimed
	case claims:
		_, err = h.claim(ctx, streams, false)
	}
	if err != nil {
		return nil, fail(err)
	}
	config := &ssh.ClientConfig{
		User: "sandshell", Auth: []ssh.AuthMethod{ssh.PublicKeys(h.signer)},
		HostKeyCallback: h.checkHostKey, HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	}
	// No byte leaves the machine, or the engine's own TLS connection: the shortest key exchange
	// will do.
	config.KeyExchanges = []string{ssh.KeyExchangeCurve25519}
	config.Ciphers = sshconn.PreferredCiphers()
	conn, err := sshconn.Handshake(ctx, streams, "box", config, h.link.announce)
	if err != nil {
		if strings.HasPrefix(err.Error(), notAuthenticated) {
			err = fmt.Errorf("%w: %w", errRefused, err)
		}
		return nil, fail(err)
	}
	return conn, nil
}

// notAuthenticated begins x/crypto's error of a client whose keys the server does not take. It
// comes after the host key was verified. What a server says when it hangs up begins otherwise.
const notAuthenticated = "ssh: handshake failed: ssh: unable to authenticate"

// errRefused says that boxd itself refuses this host: the box has another owner.
var errRefused = errors.New("boxd refuses")

// errAnother says that another boxd answers: each makes a key of its own when it starts. Where it
// comes from "boxd join", what answers need not be a boxd: a program of the box can take its place.
var errOtherBoxd = errors.New("another boxd answers than before")

func (h *Host) checkHostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	if !bytes.Equal(key.Marshal(), h.hostKey.Marshal()) {
		return errOtherBoxd
	}
	return nil
}

// adopt makes the box this host's unless it is another's, and returns boxd's key. Another program
// may have attached to a box that was restarted, so that only boxd's own word counts. If boxd
// refuses, the error is an errRefused.
func (h *Host) adopt(ctx context.Context) (hostKey ssh.PublicKey, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.Attempt)
	defer cancel()
	if control, ok := h.Place.(Controller); ok {
		return h.claimOnControl(ctx, control, true)
	}
	streams, err := h.Place.Join(ctx)
	if err != nil {
		return nil, err
	}
	defer streams.Close()
	return h.claim(ctx, streams, true)
}

// askBoxd asks boxd itself after an errAnother, and reports why this host has lost the box: an
// errAnother or an errRefused. If it is nil, what answered was not boxd: that is a cut.
func (h *Host) askBoxd(ctx context.Context) error {
	key, err := h.adopt(ctx)
	switch {
	case errors.Is(err, errRefused):
		return err
	case err == nil && !bytes.Equal(key.Marshal(), h.hostKey.Marshal()):
		return errOtherBoxd
	}
	return nil
}

// claimOnControl claims the box on boxd's own standard streams.
func (h *Host) claimOnControl(ctx context.Context, c Controller,
	adopts bool) (hostKey ssh.PublicKey, err error) {
	streams, err := c.Control(ctx)
	if err != nil {
		return nil, err
	}
	defer streams.Close()
	return h.claim(ctx, streams, adopts)
}

// claim makes this host's key the owner's, and returns boxd's, which this host expects from then on
// unless it adopts. What else comes on the streams, such as the output of the image's own command,
// is passed over. It takes nothing from behind the answer.
func (h *Host) claim(ctx context.Context, streams Streams,
	adopts bool) (hostKey ssh.PublicKey, err error) {
	stop := context.AfterFunc(ctx, func() { streams.Close() })
	defer stop()
	claim := wire.NewClaim(h.signer.PublicKey(), adopts)
	_, err = io.WriteString(streams, claim.String())
	for err == nil {
		var line string
		if line, err = readLine(streams); err != nil {
			break
		}
		key, answers, failed := claim.ParseAnswer(line)
		switch {
		case answers && failed != nil:
			return nil, fmt.Errorf("%w: %w", errRefused, failed)
		case answers:
			if !adopts {
				h.hostKey = key
			}
			return key, nil
		}
	}
	if why := ctxerr.Of(ctx); why != nil {
		return nil, why
	}
	return nil, err
}

// readLine reads a line, and nothing after it. Of a line that is too long to be boxd's it returns
// the first part.
func readLine(r io.Reader) (string, error) {
	var line []byte
	var b [1]byte
	for {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return string(line), err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
		if len(line) < wire.ClaimMax {
			line = append(line, b[0])
		}
	}
}
