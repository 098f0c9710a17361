package shellstate

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/sandbox"
)

// A Session is what this package needs of a session.
type Session struct {
	ID    string
	PID   int    // of its shell
	Bash  bool   // the shell is bash
	TTY   string // the name of its terminal
	Reads string // what its commands come on, as proc.Look.Reads; "": unknown
	Own   string // a text that is in each line of the engine's, and in no other

	// Execute executes commands in the shell, which print nothing. Neither the commands nor what
	// becomes of them are seen by the session's users.
	Execute func(ctx context.Context, commands string) error

	// Run is Run of the sandbox, as the session's user.
	Run func(ctx context.Context, cmd *sandbox.Cmd) (int, error)
}

//go:embed bash1.sh
var bashScript string

//go:embed bash2.sh
var bashRest string

//go:embed sh1.sh
var shScript string

//go:embed sh2.sh
var shRest string

//go:embed functions.sh
var shFunctions string

// Capture reads the state of a session's shell. The shell stays as it is.
func Capture(ctx context.Context, s Session) (*State, error) {
	r, err := receive(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("read the state of %s: %w", s.ID, err)
	}
	defer r.close()
	return capture(ctx, r, s, shFunctions)
}

// capture reads a state. functions is shFunctions, or "" if functions need not be searched for.
func capture(ctx context.Context, r *receiver, s Session, functions string) (*State, error) {
	mark := newMark()
	said, err := r.take(ctx, s, commands(s, mark, shellquote.Quote(r.fifo), functions))
	var state *State
	if err == nil {
		if len(s.Reads) <= maxReads { // a channel of the engine, which is no loss
			said = append(said, "\n"+mark+"reads "+s.Reads...)
		}
		said = append(said, "\n"+mark+"own "+s.Own...)
		state, err = parse(said, mark)
	}
	if err == nil && state.bash != s.Bash {
		err = errors.New("the shell has become another one")
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of %s: %w", s.ID, err)
	}
	return state, nil
}

// commands returns the commands that make a shell print its state to a FIFO. They run in a
// subshell, so that what they change for themselves is not changed in the shell. && keeps set -e
// and a trap of ERR from acting.
//
// The first script depends on nothing that may have been redefined: backslashes keep aliases out,
// and POSIX mode functions. The second one is for an eval: the shell parses it when aliases can no
// longer replace its keywords.
func commands(s Session, mark, fifo, functions string) string {
	put := strings.NewReplacer("@@", mark, "@TTY@", shellquote.Quote(s.TTY)).Replace
	if s.Bash {
		return "(" + put(bashScript) + `\builtin eval ` + shellquote.Quote(put(bashRest)) +
			" >&9\n) 9>|" + fifo + " >/dev/null 2>&1 &&:"
	}
	// functions changes variables, and so comes after these. In a subshell of dash or ash there are
	// no traps.
	return "(" + put(shScript) + `\command eval ` + shellquote.Quote(put(
		shRest+functions+`\command printf '@@traps\n'`)) +
		"\n\\exit 0\n) >|" + fifo + ` 2>/dev/null &&{ \trap; } >|` + fifo + " 2>/dev/null"
}

// A Keep says what of a session stays as it is when it gets a state.
type Keep struct {
	Variables []string
	Dir       bool // the directory and the stack of directories
}

// Restore gives the state want of the session source to the session s, whose shell has just been
// started and is of the same kind. It returns what of the state s does not have.
func Restore(ctx context.Context, source Session, want *State, s Session,
	keep Keep) ([]sandbox.Loss, error) {
	if want.bash != s.Bash {
		return nil, fmt.Errorf("%s has another kind of shell", source.ID)
	}
	r, err := receive(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("read the state of %s: %w", s.ID, err)
	}
	defer r.close()
	fresh, err := capture(ctx, r, s, "")
	if err != nil {
		return nil, err
	}
	if keep.Dir {
		want = want.in(fresh)
		keep.Variables = append(slices.Clip(keep.Variables), "OLDPWD")
	}
	restore := restoreSh
	if s.Bash {
		restore = restoreBash
	}
	if err := s.Execute(ctx, restore(fresh, want, keep.Variables)); err != nil {
		return nil, fmt.Errorf("give %s the state of %s: %w", s.ID, source.ID, err)
	}
	got, err := capture(ctx, r, s, "")
	if err != nil {
		return nil, err
	}
	return lost(source, want, got, keep.Variables), nil
}

// in returns the state with the directory of another one.
func (s *State) in(other *State) *State {
	moved := *s
	moved.parts, moved.items = map[string][]string{}, map[string]string{}
	for name, values := range s.parts {
		moved.parts[name] = values
	}
	for name, value := range s.items {
		moved.items[name] = value
	}
	delete(moved.parts, "gone")
	for _, name := range []string{"cwd", "dir"} {
		moved.parts[name] = other.parts[name]
	}
	for _, name := range []string{"directory", "directory stack"} {
		moved.items[name] = other.items[name]
	}
	return &moved
}
