package tools

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/sandshell/sandshell/sandbox"
)

// A shell is a session as the tools of one set use it.
type shell struct {
	session sandbox.Session
	options options
	tools   bool // its set has run, wait, output and so on
	// what the set's commands need and is not there; nil: they need nothing
	missing func(ctx context.Context) error

	// What is shared with the other sets of the session.
	state atomic.Pointer[sessionState]
}

// A sessionState is what all tools of a session share: a command that one of them leaves unfinished
// is everybody's.
type sessionState struct {
	log  log
	turn sync.Mutex // of the calls that execute a command: no end of one is dropped by the next
	// the last reply was about a command that had not ended: what has come of it since is still to
	// be told
	left atomic.Bool

	dir atomic.Pointer[string] // where the shell was after its last command; nil: unknown
	// of the names of run, wait, output and so on; nil: there are no such tools
	prefix atomic.Pointer[string]
}

func newShell(s sandbox.Session, opts []Option) *shell {
	sh := &shell{session: s, options: newOptions(opts)}
	sh.state.Store(&sessionState{})
	return sh
}

// A sharedShell is a shell of a set, and the prefix of the set's tools.
type sharedShell struct {
	*shell
	prefix string
}

// share has the set's shells of one session share its state, and tells them what their tools are
// called.
func (s *Set) share() {
	for i, sh := range s.shells {
		state := sh.state.Load()
		for _, first := range s.shells[:i] {
			if !sameSession(first.session, sh.session) {
				continue
			}
			shared := first.state.Load()
			if shared != state {
				shared.left.CompareAndSwap(false, state.left.Load())
				sh.state.Store(shared)
			}
			state = shared
			break
		}
		if sh.tools { // which read the log
			state.log.keep(sh.options.keep)
			state.prefix.Store(&sh.prefix)
		}
	}
}

// sameSession reports whether two sessions are one. Some types cannot be compared.
func sameSession(a, b sandbox.Session) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// named returns what a tool of the session's Shell is called.
func (s *sessionState) named(tool string) string {
	if prefix := s.prefix.Load(); prefix != nil {
		tool = *prefix + tool
	}
	return "`" + tool + "`"
}
