package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A Tool describes a function to a model that can call it.
type Tool struct {
	Name        string
	Description string             // for the model
	Schema      *jsonschema.Schema // of the arguments, an object; it is shared, so do not change it
	ReadOnly    bool               // whether it changes nothing in the box

	prefix string // of the name
	call   func(ctx context.Context, args json.RawMessage) (*Reply, error)
}

// A Reply is what a model gets for a call.
type Reply struct {
	Text   string
	Images []Image
	// Failed says that the tool could not do what it was called for, and Text says why: wrong
	// arguments, a file that does not exist. A command that ran has not failed, whatever its exit
	// status.
	Failed bool
}

// An Image is a picture beside a Reply's text.
type Image struct {
	MIME string // "image/png"
	Data []byte
}

// A Set is a list of tools. Box, Shell, Func and so on make one. New combines several. All
// its methods may be called from several goroutines.
type Set struct {
	tools   []Tool
	shells  []sharedShell
	closers []func() error
	err     error
}

// New combines sets into one, in their order. Its Close closes them all. Sets of the same session,
// such as Shell and Skills of a box, share what they know of its commands from then on: if a tool
// of one set leaves a command unfinished, the next call of any set reports it, and the tools of
// Shell can wait for it and read its output.
//
// New returns an error if a set is nil or was made with a mistake, such as a Config that is not
// valid, or if two tools have the same name: give one of the sets a Prefix then.
func New(sets ...*Set) (*Set, error) {
	all := &Set{}
	if err := all.add(sets...); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	return all, nil
}

func (s *Set) add(sets ...*Set) error {
	for i, more := range sets {
		if more == nil {
			return fmt.Errorf("New: set %d of %d is nil", i+1, len(sets))
		}
		if more.err != nil {
			return more.err
		}
		for _, t := range more.tools {
			if _, ok := s.tool(t.Name); ok {
				return fmt.Errorf("two tools are called %q: give one of the sets a Prefix", t.Name)
			}
			s.tools = append(s.tools, t)
		}
		s.closers = append(s.closers, more.closers...)
		s.shells = append(s.shells, more.shells...)
	}
	s.share()
	return nil
}

// Box returns the tools of a box's main session, files and jobs: those of Shell, Files and Jobs.
func Box(box sandbox.Sandbox, c Config) *Set {
	if isNil(box) {
		return broken(errors.New("Box: the box is nil"))
	}
	set := &Set{}
	set.err = set.add(Shell(box, c), Files(box.Files(), c), Jobs(box, c))
	return set
}

// Prefix returns a copy of the set with prefix before each tool's name, such as "build_" for a
// second shell. Names of the set's tools in backquotes, in descriptions and in errors, get the
// prefix too. The two sets share what is behind the tools, so close only one of them. If a name
// with its prefix is longer than 64 characters, or has others than letters, digits, "_" and "-",
// New returns an error.
func (s *Set) Prefix(prefix string) *Set {
	if s == nil {
		return broken(errors.New("Prefix: the set is nil"))
	}
	renamed := &Set{tools: slices.Clone(s.tools), shells: slices.Clone(s.shells),
		closers: s.closers, err: s.err}
	for i := range renamed.tools {
		t := &renamed.tools[i]
		t.Name, t.prefix = prefix+t.Name, prefix+t.prefix
		t.Description = quotedName.ReplaceAllStringFunc(t.Description, func(quoted string) string {
			name := strings.Trim(quoted, "`")
			if _, ok := s.tool(name); ok {
				name = prefix + name
			}
			return "`" + name + "`"
		})
		if err := checkName(t.Name); err != nil && renamed.err == nil {
			renamed.err = err
		}
	}
	for i := range renamed.shells {
		renamed.shells[i].prefix = prefix + renamed.shells[i].prefix
	}
	renamed.share()
	return renamed
}

// quotedName matches the name of a tool in a description.
var quotedName = regexp.MustCompile("`[A-Za-z0-9_-]+`")

// Closing returns a set without tools, whose Close calls f. New combines it with the tools of a
// box, so that closing the set closes the box.
//
//	tools.New(tools.Box(box, tools.Config{}), tools.Closing(box.Close))
func Closing(f func() error) *Set {
	if f == nil {
		return broken(errors.New("Closing: the function is nil"))
	}
	return &Set{closers: []func() error{once("the function of Closing", f)}}
}

// Tools returns the tools, in the order of the sets.
func (s *Set) Tools() []Tool { return slices.Clone(s.tools) }

// Call calls a tool as Do does, and returns the text of the Reply. It is for callers who show no
// images.
func (s *Set) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	r, err := s.Do(ctx, name, args)
	if err != nil {
		return "", err
	}
	return r.Text, nil
}

// Do calls a tool for a model. args is a JSON object; if it is empty, it counts as {}. What the
// model can correct is a Reply with Failed set. What it cannot correct is an error:
// sandbox.ErrClosed, sandbox.ErrLost, ctx's error, a *PanicError, or the plugin that the box lacks
// (agentskills.ErrNotInstalled, jupyter.ErrNotInstalled, browser.ErrMissing).
func (s *Set) Do(ctx context.Context, name string, args json.RawMessage) (*Reply, error) {
	if s.err != nil {
		return nil, fmt.Errorf("tools: %w", s.err)
	}
	t, ok := s.tool(name)
	if !ok {
		return failed(fmt.Errorf("there is no tool %q; there are %s", name,
			strings.Join(s.names(), ", "))), nil
	}
	r, err := t.do(ctx, args)
	var panicked *PanicError
	var program programError
	switch {
	case err == nil:
		return r, nil
	case errors.As(err, &panicked), errors.As(err, &program):
		return nil, fmt.Errorf("call %s: %w", name, err)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("call %s: %w", name, ctxerr.Of(ctx))
	case errors.Is(err, sandbox.ErrClosed), errors.Is(err, sandbox.ErrLost):
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	return failed(err), nil
}

// A programError is an error that no model can correct: the program has to be changed.
type programError struct{ error }

// Unwrap returns the error itself.
func (e programError) Unwrap() error { return e.error }

// Close closes what the tools have opened in the box, in the order of the sets, and calls the
// functions of Closing. It does not close the box otherwise. Close may be called again; it then
// does nothing and returns the same error. What several sets share, by New or Prefix, is closed
// once.
func (s *Set) Close() error {
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

func (s *Set) tool(name string) (Tool, bool) {
	i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return s.tools[i], true
}

func (s *Set) names() []string {
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.Name
	}
	return names
}

// failed returns the Reply for an error that the model can correct.
func failed(err error) *Reply { return &Reply{Text: "error: " + err.Error() + "\n", Failed: true} }
