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

// A Tool is a function that a model can call, as it is told of it.
type Tool struct {
	Name        string
	Description string             // for the model
	Schema      *jsonschema.Schema // of the arguments: an object. It is shared: do not change it.
	ReadOnly    bool               // whether it changes nothing in the box

	prefix string // of the name
	call   func(ctx context.Context, args json.RawMessage) (*Reply, error)
}

// A Reply is what a model gets for a call.
type Reply struct {
	Text   string
	Images []Image
	// Failed says that Text is about a call that could not be done as it was made: wrong arguments,
	// a file that is not there. A command that ran and ended with another exit status than 0 has
	// not failed.
	Failed bool
}

// An Image is a picture beside a Reply's text.
type Image struct {
	MIME string // "image/png"
	Data []byte
}

// A Set is some tools. Shell, Jobs, Files, Func and so on make one; New combines several.
type Set struct {
	tools   []Tool
	shells  []sharedShell
	closers []func() error
	err     error
}

// New combines sets into one, in their order, which closes them all. Sets of one session, such as
// Shell and Skills of a box, share it from then on: what comes of a command that one has left is
// told by the next call of any, and can be waited for and read.
//
// The error names a set that is nil or cannot be made, or a tool that is there twice: Prefix tells
// the two apart.
func New(sets ...*Set) (*Set, error) {
	all := &Set{}
	for i, s := range sets {
		if s == nil {
			return nil, fmt.Errorf("tools: New: set %d of %d is nil", i+1, len(sets))
		}
		if s.err != nil {
			return nil, fmt.Errorf("tools: %w", s.err)
		}
		for _, t := range s.tools {
			if _, ok := all.tool(t.Name); ok {
				return nil, fmt.Errorf("tools: two tools are called %q: give one of the sets a "+
					"Prefix", t.Name)
			}
			all.tools = append(all.tools, t)
		}
		all.closers = append(all.closers, s.closers...)
		all.shells = append(all.shells, s.shells...)
	}
	all.share()
	return all, nil
}

// Prefix returns the set with prefix before each tool's name, such as "build_" of a second shell.
// Names of the set's tools in backquotes in descriptions, and those in errors, get it too. The two
// sets share what is behind the tools: close one of them. If a name with its prefix is longer than
// 64 characters or has others than letters, digits, "_" and "-", New says so.
func (s *Set) Prefix(prefix string) *Set {
	if s == nil {
		return broken("Prefix: the set is nil")
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

// quotedName is the name of a tool in a description.
var quotedName = regexp.MustCompile("`[A-Za-z0-9_-]+`")

// Closing is a set without tools, whose Close calls f: New combines it with the tools of a box that
// is to be closed with them.
//
//	tools.New(tools.Shell(box), tools.Jobs(box), tools.Closing(box.Close))
func Closing(f func() error) *Set {
	if f == nil {
		return broken("Closing: the function is nil")
	}
	return &Set{closers: []func() error{once("the function of Closing", f)}}
}

// Tools returns the tools, in the order in which a model should be told of them.
func (s *Set) Tools() []Tool { return slices.Clone(s.tools) }

// Call is Do for callers who show no images.
func (s *Set) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	r, err := s.Do(ctx, name, args)
	if err != nil {
		return "", err
	}
	return r.Text, nil
}

// Do calls a tool for a model. args is a JSON object; empty is {}. What the model can mend is a
// Reply. An error is sandbox.ErrClosed, sandbox.ErrLost, ctx's, a *PanicError, or says which plugin
// the box lacks: agentskills.ErrNotInstalled, jupyter.ErrNotInstalled, browser.ErrMissing.
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

// A programError is an error that no model can mend, and a change of the program can.
type programError struct{ error }

// Unwrap returns what is wrong.
func (e programError) Unwrap() error { return e.error }

// Close closes what the tools have opened in the box, in the order of the sets; the box itself only
// by Closing. Closing again does nothing, and returns the same error. What several sets share, by
// New or Prefix, is closed once.
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

// failed is an error as a model gets it.
func failed(err error) *Reply { return &Reply{Text: "error: " + err.Error() + "\n", Failed: true} }
