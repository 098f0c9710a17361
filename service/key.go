package service

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// key is the session key of a box: an HMAC under the service's secret. It is stored nowhere. The handle and the generation change with each start of the box's
// programs, and so does the key.
func (s *Service) key(r *Record) string {
	mac := hmac.New(sha256.New, s.secret)
	fmt.Fprintf(mac, "sandshell session key\x00%s\x00%s\x00%s\x00%d", s.name, r.ID, r.Handle, r.Note.Generation)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// GetByKey returns the running box that has this session key, or ErrKey. It compares all keys, in constant time.
func (s *Service) GetByKey(ctx context.Context, key string) (*Info, error) {
	records, err := s.records(ctx, "")
	if err != nil {
		return nil, err
	}
	var its *Record
	for _, r := range records {
		if r.Status == Running && r.Note != nil && hmac.Equal([]byte(s.key(r)), []byte(key)) {
			its = r
		}
	}
	if its == nil {
		return nil, ErrKey
	}
	return s.info(ctx, its)
}
