package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// Settle waits until the host has what was accepted for the session.
func (s *Session) Settle(ctx context.Context) error {
	s.mu.Lock()
	err := s.awaitBegunLocked(ctx)
	sh := s.sh
	s.mu.Unlock()
	if err != nil || sh == nil { // another program may have the turn
		return err
	}
	s.storeNote(sh)
	return sh.awaitWritten(ctx)
}

// Renew is Renew of package shellbox, for one session.
func (s *Session) Renew(ctx context.Context, env []string) error {
	var seed [4]byte
	rand.Read(seed[:])
	own := slices.Concat(s.box.Env.Added(), s.Options().Env)
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(own, func(o string) bool {
			return strings.HasPrefix(o, name+"=")
		})
	})
	s.mu.Lock()
	s.renewal = dialect.Renew(env, binary.NativeEndian.Uint32(seed[:])>>1)
	s.mu.Unlock()
	err := s.quietly(ctx, ":")
	if errors.Is(err, sandbox.ErrBusy) {
		err = nil
	}
	s.StoreNote()
	return err
}
