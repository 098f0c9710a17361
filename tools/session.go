package tools

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/sandshell/sandshell/sandbox"
)

// A shell is a session that the tools of one set use.
type shell struct {
	session  sandbox.Session
	config   Config
	hasTools bool // whether the set has the tools of Shell: run, wait, output and so on

	// checkPlugin returns an error if the box lacks the plugin that the set's commands need. It is
	// nil if they need none.
	checkPlugin func(ctx context.Context) error

	// state is shared with the other sets of the session.
	state atomic.Pointer[sessionState]
}

// A sessionState is the state that all sets of a session share. If a tool of one set leaves a
// command unfinished, the tools of the others know of it.
type sessionState struct {
	log log

	// executing is locked by the call that executes a command. So no other call can drop the end
	// of that command.
	executing sync.Mutex

	// unfinished says that the command of the last reply had not ended. What the command has
	// printed since, and how it has ended, is still to be reported.
	unfinished atomic.Bool

	// told says that the last reply told that the command may be waiting, or still working.
	told atomic.Bool

	// dir is the shell's directory after its last command, and nil if unknown.
	dir atomic.Pointer[string]

	// prefix is the prefix of the names of Shell's tools, and nil if no set has these tools.
	prefix atomic.Pointer[string]
}

func newShell(s sandbox.Session, c Config) *shell {
	sh := &shell{session: s, config: c}
	sh.state.Store(&sessionState{})
	return sh
}

// A sharedShell is a shell of a set with the prefix of the set's tools.
type sharedShell struct {
	*shell
	prefix string
}

// share makes the set's shells of the same session share one state, and records the prefix of
// Shell's tools there.
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

// sameSession reports whether two sessions are the same. Sessions of a type that Go cannot compare
// never are.
func sameSession(a, b sandbox.Session) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// toolName returns the name, in backquotes, of a tool of the session's Shell.
func (s *sessionState) toolName(tool string) string {
	if prefix := s.prefix.Load(); prefix != nil {
		tool = *prefix + tool
	}
	return "`" + tool + "`"
}
