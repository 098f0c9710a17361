package kube

import (
	"net/http"
	"sync/atomic"
	"time"
)

// A serverClock tells the API server's time, which timestamps of objects are of: its clock need not
// be this machine's. It learns it from the answers that it passes on.
type serverClock struct {
	next  http.RoundTripper
	ahead atomic.Int64 // of this machine's clock, in nanoseconds
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

// now is the time of the latest answer's server, to a second; this machine's if none has told it.
func (s *serverClock) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
