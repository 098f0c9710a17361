package kube

import (
	"net/http"
	"sync/atomic"
	"time"
)

// A serverClock knows the API server's time. Timestamps of objects are of the server's clock, which
// may differ from this machine's. It learns the time from the answers that pass through it.
type serverClock struct {
	next  http.RoundTripper
	ahead atomic.Int64 // how far the server's clock is ahead, in nanoseconds
}

func (s *serverClock) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	if err == nil {
		if t, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			s.ahead.Store(int64(time.Until(t)))
		}
	}
	return resp, err
}

// now returns the server's time, to a second. It returns this machine's time if there was no answer
// yet.
func (s *serverClock) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
