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
	"github.com/sandshell/sandshell/internal/nearest"
	"github.com/sandshell/sandshell/sandbox"
)

// A Tool describes a function to a model that can call it.
type Tool struct {
	Name        string
	Description string             // for the model
	Schema      *jsonschema.Schema // of the arguments object; it is shared, so do not change it
	ReadOnly    bool               // whether a call changes nothing in the box

	prefix string  // of the name
	outlet *outlet // nil if its box has no Egress
	call   func(ctx context.Context, args json.RawMessage) (*Reply, error)
}

// A Reply is what a model gets for a call.
type Reply struct {
	Text   string  // for the model
	Images []Image // for a model that sees images; nil if there are none
	// Failed says that the tool could not do what the model wanted, and Text says why: the
	// arguments are wrong, or a file does not exist. If a command ran, Failed is false whatever its
	// exit status.
	Failed bool
}

// An Image is a picture beside a Reply's text.
type Image struct {
	MIME string // such as "image/png"
	Data []byte // the image as it is in a file
}

// A Set is a list of tools. Box, Shell, Func and so on return one, and New combines several. All
// methods of a Set may be called from several goroutines.
type Set struct {
	tools   []Tool
	shells  []sharedShell
	closers []func() error
	err     error
}

// New combines sets into one, in their order. Its Close closes them all. From then on, sets of the
// same session, such as Shell and Skills of a box, share what they know of its commands. If a tool
// of one set leaves a command unfinished, the next call of any set reports it, and the tools of
// Shell can wait for it and read its output. Without sets, it has no tools.
//
// New returns an error if a set is nil, or was made with a mistake such as an invalid Config. It
// also returns one if two tools have the same name. Then give one of the sets a Prefix.
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
			return fmt.Errorf("New: set %d of %d is nil: leave it out", i+1, len(sets))
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
	s.shareOutlets()
	return nil
}

// Box returns the tools of a box's main session, files and jobs. They are those of Shell, Files and
// Jobs. If Config.History is set, they are those of History too, and if Config.Skills is set, those
// of Skills with the prefix "skill_".
func Box(box sandbox.Sandbox, c Config) *Set {
	if isNil(box) {
		return broken(errors.New("Box: the box is nil: check the error of the call that made it"))
	}
	set := &Set{}
	set.err = set.add(Shell(box, c), Files(box.Files(), c), Jobs(box, c))
	if set.err == nil && c.History != "" {
		set.err = set.add(History(box, c))
	}
	if set.err == nil && c.Skills {
		set.err = set.add(Skills(box, c).Prefix(skillPrefix))
	}
	return set
}

// skillPrefix is before the names of the skills in a Box. Files has a tool "edit", too.
const skillPrefix = "skill_"

// Prefix returns a copy of the set with prefix before each tool's name, such as "build_" for a
// second shell. If a description or an error names a tool of the set in backquotes, that name gets
// the prefix too. The copy shares what the set has opened, so close only one of them. If a name
// with its prefix is not 1 to 64 letters, digits, "_" and "-", New returns an error.
func (s *Set) Prefix(prefix string) *Set {
	if s == nil {
		return broken(errors.New("Prefix: the set is nil: give one of this package"))
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

// Closing returns a set that has no tools and whose Close calls f. If New combines it with the
// tools of a box, closing the set can close the box:
//
//	tools.New(tools.Box(box, tools.Config{}), tools.Closing(box.Close))
func Closing(f func() error) *Set {
	if f == nil {
		return broken(errors.New("Closing: the function is nil: give the Close of a box"))
	}
	return &Set{closers: []func() error{once("the function of Closing", f)}}
}

// Tools returns the tools, in the order of the sets. If Config.Egress is set, the descriptions say
// what may be reached at this moment.
func (s *Set) Tools() []Tool {
	all := slices.Clone(s.tools)
	for i := range all {
		if o := all[i].outlet; o != nil && o.describes {
			all[i].Description += o.describe()
		}
	}
	return all
}

// Call calls a tool, as Do does, and returns the text of the Reply. It is for programs that show a
// model no images.
func (s *Set) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	r, err := s.Do(ctx, name, args)
	if err != nil {
		return "", err
	}
	return r.Text, nil
}

// noOutput is the text of a reply that would be empty.
const noOutput = "[no output]\n"

// Do calls a tool for a model. args is a JSON object. If args is empty, it counts as {}. A Reply
// without text and images gets the text "[no output]", because some models' APIs refuse an empty
// result.
//
// A mistake that the model can correct is a Reply with Failed set. An error is what it cannot
// correct: sandbox.ErrClosed, sandbox.ErrLost, ctx's error, a *PanicError, or, if the box lacks the
// tool's plugin, agentskills.ErrNotInstalled, jupyter.ErrNotInstalled or browser.ErrMissing.
func (s *Set) Do(ctx context.Context, name string, args json.RawMessage) (*Reply, error) {
	if s.err != nil {
		return nil, fmt.Errorf("tools: %w", s.err)
	}
	t, ok := s.tool(name)
	if !ok {
		return failed(s.errNoTool(name)), nil
	}
	r, err := t.do(ctx, args)
	if r, err = t.answer(ctx, r, err); err == nil && t.outlet != nil {
		r, err = t.outlet.tell(r)
	}
	return r, err
}

// answer returns what the model gets for what the tool has returned, but for what was refused.
func (t *Tool) answer(ctx context.Context, r *Reply, err error) (*Reply, error) {
	name := t.Name
	var panicked *PanicError
	var program programError
	switch {
	case err == nil && r.Text == "" && len(r.Images) == 0:
		silent := *r
		silent.Text = noOutput
		return &silent, nil
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

// A programError is an error that no model can correct. The program has to be changed.
type programError struct{ error }

// Unwrap returns the error itself.
func (e programError) Unwrap() error { return e.error }

// Close closes what the tools have opened in the box, and calls the functions of Closing, in the
// order of the sets. It closes the box only if such a function does. Further calls do nothing and
// return the same error. What several sets share, by New or Prefix, is closed once.
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

// errNoTool returns the error for a tool that does not exist.
func (s *Set) errNoTool(name string) error {
	names := s.names()
	if near := nearest.Of(name, names); near != "" {
		return fmt.Errorf("there is no tool %q: did you mean %q?", abbreviate(name), near)
	}
	return fmt.Errorf("there is no tool %q: use one of %s", abbreviate(name),
		strings.Join(names, ", "))
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
