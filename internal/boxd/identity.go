//go:build linux

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
)

// newHostKey makes the key by which clients know this boxd.
func newHostKey() (ssh.Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(private)
}

// renew gives the box an id and a host key of its own, after a checkpoint of another box was
// started. Guests of the other box are forgotten; addOwner forgets the owners. If the box has the
// id already, because the first answer was lost, renew does nothing.
func (s *server) renew(id string) error {
	s.renewing.Lock()
	defer s.renewing.Unlock()
	s.mu.Lock()
	done := s.id == id
	s.mu.Unlock()
	switch {
	case done:
		return nil
	case s.dir != "":
		return errors.New("a box on a machine is no copy")
	}
	hostKey, err := newHostKey()
	if err != nil {
		return err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: wire.SocketName(id), Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen under the new id: %w", err)
	}
	s.mu.Lock()
	before := s.listener
	s.id, s.hostKey, s.listener, s.former = id, hostKey, listener, s.env
	s.guests = map[string]bool{}
	s.mu.Unlock()
	before.Close()
	s.closeConns(func(c *conn) bool { return c.owner == nil })
	go s.accept(listener)
	return nil
}

// takeIdentity sets what a copy has of its own. It returns the variables of programs whose values
// are others than before.
func (s *server) takeIdentity(of wire.Identity) (changed [][]byte) {
	var container []string
	for _, kv := range of.Env {
		container = append(container, string(kv))
	}
	env := environment(container)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kv := range lastValues(env) {
		if !slices.Contains(s.former, kv) {
			changed = append(changed, []byte(kv))
		}
	}
	s.env, s.linger = env, of.Linger
	s.keeps.Store(of.Keep)
	return changed
}
