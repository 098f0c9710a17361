package deeds

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sandshell/sandshell/service/internal/api"
)

// wantsEvents reports whether a request asks for a stream of events.
func wantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// eventLimit is how long a client may take to receive an event.
const eventLimit = 30 * time.Second

// firstBeat is when a stream begins that has nothing to tell yet. Until then, an error is answered
// with a status of its own.
const firstBeat = time.Second

// events answers with events: those that do sends, and at the end an event "result" or "error".
func (c *call) events(do func(ctx context.Context, s *events) (any, error)) error {
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	s := &events{w: c.w, conn: http.NewResponseController(c.w), gone: cancel}
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		beat := time.NewTimer(min(firstBeat, c.Heartbeat))
		defer beat.Stop()
		for {
			select {
			case <-stop:
				return
			case <-beat.C:
				_ = s.comment("it goes on")
				beat.Reset(c.Heartbeat)
			}
		}
	})
	answer, err := do(ctx, s)
	close(stop)
	beating.Wait()
	return s.end(answer, err)
}

// events are server-sent events, which end with a request. As a writer, they take the output of a
// terminal.
type events struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	conn  *http.ResponseController
	begun bool
	rest  []byte // the beginning of a rune whose end has not come
	err   error  // why the client gets nothing more
	gone  func() // called then: it ends the request
}

// Write sends output.
func (s *events) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := append(s.rest, p...)
	whole := wholeRunes(text)
	s.rest = append([]byte(nil), text[whole:]...)
	if whole > 0 {
		s.sendLocked("output", map[string]string{"text": string(text[:whole])})
	}
	return len(p), s.err
}

// wholeRunes returns the length of text without a rune at its end whose end is missing.
func wholeRunes(text []byte) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// comment sends a comment, which clients ignore.
func (s *events) comment(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked(": " + text + "\n\n")
}

// send sends an event.
func (s *events) send(name string, v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendLocked(name, v)
	return s.err
}

func (s *events) sendLocked(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.err = err
		return
	}
	_ = s.writeLocked(fmt.Sprintf("event: %s\ndata: %s\n\n", name, data))
}

func (s *events) writeLocked(text string) error {
	if s.err != nil {
		return s.err
	}
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-store")
		s.w.Header().Set("X-Accel-Buffering", "no") // a proxy passes events on at once
	}
	// It fails only if there is no connection, as with httptest.ResponseRecorder.
	_ = s.conn.SetWriteDeadline(time.Now().Add(eventLimit))
	if _, s.err = io.WriteString(s.w, text); s.err == nil {
		s.err = s.conn.Flush()
	}
	if s.err != nil {
		s.gone()
	}
	return s.err
}

// end sends the last event. If the stream has not begun, end returns the error, which is then
// answered without events.
func (s *events) end(answer any, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !s.begun {
		return err
	}
	if len(s.rest) > 0 {
		s.sendLocked("output", map[string]string{"text": string(s.rest)})
	}
	if err != nil {
		s.sendLocked("error", api.ErrorOf(err))
	} else {
		s.sendLocked("result", answer)
	}
	_ = s.conn.SetWriteDeadline(time.Time{})
	return nil
}
