package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox"
	"golang.org/x/crypto/ssh"
)

// openConn makes a connection. With claims, it makes this Host the new owner. Without, the Host
// must be the owner already.
func (h *Host) openConn(ctx context.Context, claims bool) (*sshconn.Conn, error) {
	control, beside := h.Place.(Controller)
	beside = beside && claims
	claimed := make(chan error, 1)
	if beside { // at the same time, because an engine takes much longer to execute boxd join
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
	started := h.started
	h.started = nil
	switch {
	case beside:
		err = <-claimed
	case started != nil:
		_, err = h.awaitAnswer(ctx, streams, started.claim, false)
	case claims:
		_, err = h.claim(ctx, streams, false)
	}
	if err == nil && started != nil {
		var conn *sshconn.Conn
		if conn, err = sshconn.Plain(streams, wire.Plain, h.link.announce); err == nil {
			h.streams.Store(&streams)
			return conn, nil
		}
	}
	if err != nil {
		return nil, fail(err)
	}
	config := &ssh.ClientConfig{
		User: "sandshell", Auth: []ssh.AuthMethod{ssh.PublicKeys(h.Key.signer)},
		HostKeyCallback: h.checkHostKey, HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	}
	// The bytes stay on this machine or in the engine's own TLS connection, so the shortest key
	// exchange suffices.
	config.KeyExchanges = []string{ssh.KeyExchangeCurve25519}
	config.Ciphers = sshconn.PreferredCiphers()
	conn, err := sshconn.Handshake(ctx, streams, "box", config, h.link.announce)
	if err != nil {
		if strings.HasPrefix(err.Error(), notAuthenticated) {
			err = fmt.Errorf("%w: %w", errRefused, err)
		}
		return nil, fail(err)
	}
	h.streams.Store(&streams)
	return conn, nil
}

func (h *Host) lostError(err error, reason string, cause sandbox.LostCause) error {
	return &sandbox.LostError{Box: h.Name, Reason: reason, Cause: cause, Err: err}
}

// lastWords returns what boxd has said at its end, to be added to the reason of a LostError. Go's
// runtime prints there why it has ended boxd: a panic or a fatal error. It returns "" if boxd has
// said nothing. The text is quoted, because a program of the box may have written it.
func (h *Host) lastWords() string {
	streams := h.streams.Load()
	if streams == nil {
		return ""
	}
	said := (*streams).Said()
	if said == "" {
		return ""
	}
	return fmt.Sprintf("; boxd's last words: %q", said)
}

// notAuthenticated is the beginning of x/crypto's error if the server does not accept the client's
// keys. The error comes after the host key was verified. If a server hangs up, the error begins
// otherwise.
const notAuthenticated = "ssh: handshake failed: ssh: unable to authenticate"

// errRefused says that boxd itself refuses this Host: the box has another owner.
var errRefused = errors.New("boxd refuses")

// errOtherBoxd says that the host key is not that of the boxd to which this Host was connected.
// Each boxd makes a key when it starts. On a connection of "boxd join", a program of the box may
// also have taken the place of join.
var errOtherBoxd = errors.New("another boxd answers than before")

func (h *Host) checkHostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	if !bytes.Equal(key.Marshal(), h.hostKey.Marshal()) {
		return errOtherBoxd
	}
	return nil
}

// adopt makes this Host the owner unless the box has another, and returns boxd's key. If boxd was
// restarted, another program may own the box since, so only boxd's own answer counts. If boxd
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

// askBoxd asks boxd itself after an errOtherBoxd. It returns why this Host has lost the box, an
// errOtherBoxd or an errRefused. If it returns nil, another program has answered before in the
// place of boxd, which is a cut like any other.
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

// claim makes this Host's key the owner's, and returns boxd's host key. Unless adopts is set, the
// Host expects that key from then on.
func (h *Host) claim(ctx context.Context, streams Streams,
	adopts bool) (hostKey ssh.PublicKey, err error) {
	stop := context.AfterFunc(ctx, func() { streams.Close() })
	defer stop()
	claim := wire.NewClaim(h.Key.signer.PublicKey(), adopts)
	switch {
	case h.Joins && !adopts:
		claim = wire.NewJoin(h.Key.signer.PublicKey())
	case h.Renews != "" && !adopts:
		claim = wire.NewRenewal(h.Key.signer.PublicKey(), h.Renews)
	}
	if _, err := io.WriteString(streams, claim.String()); err != nil {
		if why := ctxerr.Of(ctx); why != nil {
			return nil, why
		}
		return nil, err
	}
	return h.awaitAnswer(ctx, streams, claim, adopts)
}

// awaitAnswer waits for the answer to a claim. It skips everything else that comes on the streams,
// such as the output of the image's own command. It reads nothing that follows the answer.
func (h *Host) awaitAnswer(ctx context.Context, streams Streams, claim wire.Claim,
	adopts bool) (hostKey ssh.PublicKey, err error) {
	stop := context.AfterFunc(ctx, func() { streams.Close() })
	defer stop()
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

// readLine reads a line, and nothing that follows it. If the line is too long to be boxd's, it
// returns the first part.
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

// TakeIdentity gives a copy of a box what it has of its own: the variables of its container,
// "NAME=value", how long it outlasts its owner, and whether it is kept. It returns the variables of
// programs whose values are others than in the box that it is a copy of.
func (h *Host) TakeIdentity(ctx context.Context, env []string, linger time.Duration,
	keep bool) (changed []string, err error) {
	of := wire.Identity{Linger: linger, Keep: keep}
	for _, kv := range env {
		of.Env = append(of.Env, []byte(kv))
	}
	values, err := ask[[][]byte](ctx, h, wire.IdentityRequest, of)
	for _, kv := range values {
		changed = append(changed, string(kv))
	}
	return changed, err
}

// AddGuest lets the holder of a key log in as a guest, with plain SSH, as a person's ssh does. It
// returns boxd's host key.
func (h *Host) AddGuest(ctx context.Context, key ssh.PublicKey) (hostKey ssh.PublicKey, err error) {
	if _, err := h.request(ctx, wire.GuestRequest, key.Marshal()); err != nil {
		return nil, err
	}
	return h.hostKey, nil
}
