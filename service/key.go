package service

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/sandshell/sandshell/service/place"
)

// key returns the session key of a box: two HMACs under the service's secret. The first is the same
// for all keys of the id. The second changes with the handle and the generation, and so with each
// start of the box's programs. Keys are not stored.
func (s *Service) key(r *place.Record) string {
	return s.idKey(r.ID) + s.mac("session key", r.ID, r.Handle, strconv.Itoa(r.Note.Generation))
}

// idKey returns the beginning of each session key of the id. The Proxy asks the engine about a box
// only if the request has this part. So a request without it costs the engine nothing, and its
// answer takes the same time whether or not the box exists.
func (s *Service) idKey(id string) string { return s.mac("id", id)[:22] }

func (s *Service) mac(what string, parts ...string) string {
	return base64.RawURLEncoding.EncodeToString(s.sum(what, parts...))
}

// sum returns an HMAC under the service's secret. what names what it is for.
func (s *Service) sum(what string, parts ...string) []byte {
	mac := hmac.New(sha256.New, s.secret)
	fmt.Fprintf(mac, "sandshell %s\x00%s", what, s.name)
	for _, p := range parts {
		fmt.Fprintf(mac, "\x00%s", p)
	}
	return mac.Sum(nil)
}

// GetByKey returns the running box that has a session key. The error is ErrNotFound if no running
// box has it. GetByKey compares all keys, in constant time.
func (s *Service) GetByKey(ctx context.Context, key string) (info *Info, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	records, err := s.records(ctx, "")
	if err != nil {
		return nil, err
	}
	var found *place.Record
	for _, r := range records {
		if r.Status == Running && r.Note != nil && hmac.Equal([]byte(s.key(r)), []byte(key)) {
			found = r
		}
	}
	if found == nil {
		return nil, fmt.Errorf("find the box of a session key: %w", ErrNotFound)
	}
	return s.info(ctx, found)
}
