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
	session  sandbox.Session
	config   Config
	hasTools bool // its set has the tools of Shell: run, wait, output and so on

	// checkPlugin returns an error if the box lacks what the set's commands need. If it is nil,
	// they need nothing.
	checkPlugin func(ctx context.Context) error

	// The state that the sets of the session share.
	state atomic.Pointer[sessionState]
}

// A sessionState is what all tools of a session share. If one tool leaves a command unfinished, the
// others know of it.
type sessionState struct {
	log log

	// executing is held by the call that executes a command, so that the next call does not drop
	// the end of the command before it.
	executing sync.Mutex

	// unfinished says that the last reply was about a command that had not ended. What the command
	// has printed since, and how it ended, is still to be reported.
	unfinished atomic.Bool

	// dir is the shell's directory after its last command; nil if unknown.
	dir atomic.Pointer[string]

	// prefix is the prefix of the names of Shell's tools; nil if no set has these tools.
	prefix atomic.Pointer[string]
}

func newShell(s sandbox.Session, c Config) *shell {
	sh := &shell{session: s, config: c}
	sh.state.Store(&sessionState{})
	return sh
}

// A sharedShell is a shell of a set, and the prefix of the set's tools.
type sharedShell struct {
	*shell
	prefix string
}

// share makes the set's shells of the same session share its state, and sets the prefix of their
// tools.
func (s *Set) share() {
	for i, sh := range s.shells {
		state := sh.state.Load()
		for _, first := range s.shells[:i] {
			if !sameSession(first.session, sh.session) {
				continue
			}
			shared := first.state.Load()
			if shared != state {
				shared.unfinished.CompareAndSwap(false, state.unfinished.Load())
				sh.state.Store(shared)
			}
			state = shared
			break
		}
		if sh.hasTools {
			state.log.grow(sh.config.MaxLog)
			state.prefix.Store(&sh.prefix)
		}
	}
}

// sameSession reports whether two sessions are the same. Those whose types cannot be compared are
// not.
func sameSession(a, b sandbox.Session) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// toolName returns the name of a tool of the session's Shell.
func (s *sessionState) toolName(tool string) string {
	if prefix := s.prefix.Load(); prefix != nil {
		tool = *prefix + tool
	}
	return "`" + tool + "`"
}
