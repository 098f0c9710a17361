package egress

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox"
)

// ErrServed says that another Exit serves a box, of this process or of another one. It is an error
// of an Attach with an Authority.
var ErrServed = errors.New("another Exit serves the box")

// An AttachOption changes an Attach.
type AttachOption func(*attachOptions)

type attachOptions struct {
	key      attachKey // nil if there is none
	prepared *Exit
	err      error
}

const leastKey = 32

// Authority lets another Exit follow this one, in this process or in another, while programs of the
// box go on. With the same key, the box has the same certificate authority, the same placeholders
// of secrets and the same files, and what is there already is not changed again. Leave the box by
// Exit.Detach. The end of the process does the same, however it comes.
//
// One Exit serves the box at a time: else Attach returns ErrServed. Between two Exits, programs of
// the box reach nothing. The box must be a container without a network, and port 3128 of its
// loopback must be free.
//
// key has at least 32 bytes, is secret, and is of this box only: who knows it can pose as any
// server to the box's programs. It is neither stored nor sent into the box.
func Authority(key []byte) AttachOption {
	return func(o *attachOptions) {
		if len(key) < leastKey {
			o.err = fmt.Errorf("Authority: the key has %d bytes: give at least %d secret bytes",
				len(key), leastKey)
		}
		o.key = append(attachKey{}, key...)
	}
}

// Prepared lets an Attach follow an Exit of this process that was attached to the same box with the
// same Authority, and that has left it by Detach. It does not look at the box again, and so takes a
// few round trips: a box that was made ahead can be handed over to any Gate.
func Prepared(x *Exit) AttachOption {
	return func(o *attachOptions) { o.prepared = x }
}

// of returns what an Exit has left in a box; nil if it has not, or had another key.
func (x *Exit) of(box sandbox.Sandbox, key attachKey) *settlement {
	if x == nil || x.settled == nil || !x.settled.keyed || x.settled.box != box ||
		!bytes.Equal(x.key, key) {
		return nil
	}
	select {
	case <-x.done:
		return x.settled
	default:
		return nil
	}
}

// inspection returns what an inspection of the box would find, or nil.
func (s *settlement) inspection() *inspection {
	if s == nil {
		return nil
	}
	in := *s.found
	in.adopted, in.env, in.dirs = true, s.env, s.system.dirs
	return &in
}

// An attachKey makes what is the same in all Exits of one key. If it is nil, all that it makes is
// random.
type attachKey []byte

func (k attachKey) bytes(what string, n int) []byte {
	b := make([]byte, n)
	if k == nil {
		_, _ = rand.Read(b) // it never fails
		return b
	}
	b, err := hkdf.Key(sha256.New, k, nil, "sandshell egress "+what, n)
	if err != nil {
		panic(err) // n is too great
	}
	return b
}

// text returns 26 letters and digits.
func (k attachKey) text(what string) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(k.bytes(what, 16))
}

// private returns a private key.
func (k attachKey) private(what string) *ecdsa.PrivateKey {
	for i := 0; ; i++ {
		private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(),
			k.bytes(fmt.Sprint(what, " ", i), 32))
		if err == nil { // else the number is too great, as one of 2³² is
			return private
		}
	}
}

// dirName returns the name of the directory in the box.
func (k attachKey) dirName() string { return tempname.Prefix + k.text("directory") }

// claim makes the listeners of an Exit with a key, before anything else: it costs the box nothing
// if another Exit serves it.
func (s *settlement) claim(ctx context.Context) (err error) {
	if sharesLoopback(s.box) {
		return errAlone
	}
	s.outward, err = listenOutward(ctx, s.box)
	if errors.Is(err, syscall.EADDRINUSE) {
		return ErrServed
	}
	if err != nil {
		return err
	}
	// boxd says whether a program of the box has the port. A program that has it keeps the Exit
	// from serving its own box, and cannot pose as another Exit.
	s.listener, err = s.box.Listen(ctx, "tcp", "127.0.0.1:"+proxyPort)
	switch {
	case errors.Is(err, hostapi.ErrListens) && s.outward == nil:
		return ErrServed
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("a program in the box listens on port %s, which is for the proxy: end "+
			"it: %w", proxyPort, err)
	}
	return err
}

var errAlone = errors.New("Authority: other programs share the box's loopback: take a container " +
	"without a network, or leave Authority out")

// sharesLoopback reports whether programs outside of a box may share its loopback.
func sharesLoopback(box sandbox.Sandbox) bool {
	kind := box.String()
	return kind == "LocalBox" || kind == "SSHBox"
}

// Detach ends the way out as Close does, and leaves in the box what Attach has put there: the next
// Exit with the same Authority takes it over. Until then, programs of the box reach nothing. If the
// Exit has no Authority, Detach is Close. After Detach, Close does nothing.
func (x *Exit) Detach() error {
	s := x.settled
	if s == nil || !s.keyed {
		return x.Close()
	}
	x.close.Do(func() {
		s.closeListeners()
		x.shut()
		<-s.served
	})
	return nil
}

// Done returns a channel that is closed when the Exit no longer serves: after Close or Detach, when
// the box or the connection to it is lost, and when another Exit with the same Authority has taken
// over while the connection was cut.
func (x *Exit) Done() <-chan struct{} { return x.done }

func (s *settlement) closeListeners() {
	var wait sync.WaitGroup
	for _, l := range []net.Listener{s.listener, s.outward} {
		if l != nil {
			wait.Go(func() { _ = l.Close() })
		}
	}
	wait.Wait()
}
