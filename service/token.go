package service

import (
	"context"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

// Token returns a token for a box, for an API beside Handler and Proxy: an HMAC of use, which names
// that API, and of the box's id under Config.Secret. The box need not exist. Unlike the box's
// SessionKey it stays the same when the box is started anew, and nobody can tell that a token has
// leaked: so use it where the id is not used again.
func (s *Service) Token(use, id string) string { return s.mac("token", use, id) }

// OpenRunning is Open for requests of which a box gets many. If the box is known to run and this
// process is connected to it, the engine is not asked.
func (s *Service) OpenRunning(ctx context.Context, id string) (sandbox.Sandbox, error) {
	return s.openKnown(ctx, id, func(*place.Record) bool { return true })
}
