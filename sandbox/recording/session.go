package recording

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A session records what goes on in a session.
type session struct{ track *track }

// Execute implements sandbox.SessionObserver.
func (s *session) Execute(ctx context.Context, text string) (context.Context,
	sandbox.CommandObserver) {
	c := &command{track: s.track, began: time.Now()}
	s.track.begin(text)
	return ctx, c
}

// Input implements sandbox.SessionObserver.
func (s *session) Input(text string, awaits sandbox.InputKind) {
	s.track.input(withoutSecrets(text, awaits))
}

// withoutSecrets returns what of the text that is typed is known to be no secret.
func withoutSecrets(text string, awaits sandbox.InputKind) string {
	switch {
	case awaits == sandbox.Line:
		if end := strings.IndexAny(text, "\n\r\x04"); end >= 0 {
			return text[:end+1]
		}
		return text
	case len(text) == 1 && text[0] < ' ':
		return text
	}
	return ""
}

// Resize implements sandbox.SessionObserver.
func (s *session) Resize(rows, cols int) { s.track.resize(rows, cols) }

// Close implements sandbox.SessionObserver.
func (s *session) Close() { s.track.close() }

// A command records one Execute.
type command struct {
	*track   // for Write
	began    time.Time
	executed atomic.Bool // a call has returned a Result
}

// Result implements sandbox.CommandObserver.
func (c *command) Result(*sandbox.Result) { c.executed.Store(true) }

// End implements sandbox.CommandObserver.
func (c *command) End(res *sandbox.Result, err error) {
	switch {
	case res != nil && res.State == sandbox.Exited:
		c.track.end(exitStatus(res, c.began))
	case res == nil && err == nil:
		c.track.end("the previous command had ended, unseen")
	case res == nil && !c.executed.Load():
		c.track.end("not executed: " + err.Error())
	}
}

func exitStatus(res *sandbox.Result, began time.Time) string {
	return fmt.Sprintf("exit status %d after %.3f s", res.ExitCode, time.Since(began).Seconds())
}
