package egress

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sandshell/sandshell/internal/guard"
)

// A Secret is a value that programs of the box use and never see. In the box, the variable Env has
// a placeholder. In requests to Hosts the value takes its place, and in their answers the
// placeholder takes the value's. A request with the placeholder to any other host is refused.
//
// The value goes over TLS only, to a server whose certificate was verified. It is in no Event,
// error, log or recording, and not in the box.
type Secret struct {
	// Env is the variable that has the placeholder in the box, and the secret's name in Events.
	Env string
	// Prefix begins the placeholder, for programs that look at it, as in "sk-". It has letters,
	// digits, "-" and "_". Default: none.
	Prefix string
	// Value returns the value. It is called at each request with the placeholder, so the value may
	// change. It has at least 8 printable characters of ASCII: a shorter one could not be told from
	// other text in answers. FromEnv makes a Value.
	Value func(ctx context.Context) (string, error)
	// Hosts are where the value goes, each as the text of a rule with the scheme https:
	// "llm.example.com", or with methods and paths, as in "POST https://llm.example.com/v1/*".
	// Rules of Config.Allow must allow them. A host that shows the value in another form, encrypted
	// or reversed, gives it away: methods and paths keep programs from what echoes or stores it.
	Hosts []string
	// In is where in a request the placeholder is looked for. Default: Header.
	In Place
}

// A Place is a part of a request. Places may be joined by "|".
type Place int

// The places of a Secret.
const (
	// Header is all headers. In those with a login of scheme Basic, the login is decoded.
	Header Place = 1 << iota
	// Query is the query of the URL.
	Query
	// Body is the body of the request, up to 1 MiB. A value in JSON or in a form is escaped.
	Body
)

// FromEnv returns a Secret.Value: the variable of this process, as it is at each use.
func FromEnv(name string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		if value, ok := os.LookupEnv(name); ok {
			return value, nil
		}
		return "", fmt.Errorf("the variable %s is not set", name)
	}
}

var (
	validEnv    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	validPrefix = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)
)

// leastSecret is how long a value is at least.
const leastSecret = 8

// A guarded is a Secret whose Hosts are rules.
type guarded struct {
	Secret
	hosts []Rule
}

// guardAll checks the secrets.
func guardAll(secrets []Secret, p *policy) ([]guarded, error) {
	var all []guarded
	names := variableNames()
	for i, s := range secrets {
		at := fmt.Sprintf("Config.Secrets[%d].", i)
		hosts, err := s.check(at, p)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, s.Env) {
			return nil, fmt.Errorf("%sEnv: %s is set by another Secret, or by Attach itself", at,
				s.Env)
		}
		names = append(names, s.Env)
		if s.In == 0 {
			s.In = Header
		}
		all = append(all, guarded{s, hosts})
	}
	return all, nil
}

// check returns the Hosts as rules. An error names the field after at.
func (s *Secret) check(at string, p *policy) ([]Rule, error) {
	switch {
	case !validEnv.MatchString(s.Env):
		return nil, fmt.Errorf("%sEnv: %q is not the name of a variable", at, s.Env)
	case !validPrefix.MatchString(s.Prefix):
		return nil, fmt.Errorf("%sPrefix: %q has more than letters, digits, \"-\" and \"_\"",
			at, s.Prefix)
	case s.Value == nil:
		return nil, fmt.Errorf("%sValue: %s has none: FromEnv makes one", at, s.Env)
	case len(s.Hosts) == 0:
		return nil, fmt.Errorf("%sHosts: %s has none: name the hosts that get the value", at,
			s.Env)
	case s.In < 0 || s.In > Header|Query|Body:
		return nil, fmt.Errorf("%sIn: %d is not made of Header, Query and Body", at, s.In)
	}
	hosts := Rules(s.Hosts...)
	for i := range hosts {
		r := &hosts[i]
		err := r.check()
		if err == nil && r.Scheme != "" && r.Scheme != "https" {
			err = fmt.Errorf("%q: a secret goes over https only", s.Hosts[i])
		}
		r.Scheme = "https"
		if err == nil && !slices.ContainsFunc(p.allow, r.within) {
			err = fmt.Errorf("no rule of Config.Allow allows %v: add one", r)
		}
		if err != nil {
			return nil, fmt.Errorf("%sHosts[%d]: %w", at, i, err)
		}
	}
	return hosts, nil
}

// within reports whether all hosts and ports of the rule, which is for https, are those of an
// allowing one.
func (r *Rule) within(allow Rule) bool {
	if allow.Scheme != "" && allow.Scheme != "https" {
		return false
	}
	ports := r.Ports
	if len(ports) == 0 {
		ports = []int{443}
	}
	for _, port := range ports {
		if !allow.matchesPort("https", port) {
			return false
		}
	}
	return allow.Host == "*" || allow.Host == r.Host || strings.HasPrefix(allow.Host, "*.") &&
		strings.HasSuffix(r.Host, allow.Host[1:])
}

// A swap is a Secret in one box.
type swap struct {
	*guarded
	placeholder string

	mu    sync.Mutex
	forms []form // what stands for what in answers; at most mostForms, the last ones
}

// A form is a text with the value in it, and the same with the placeholder.
type form struct{ value, placeholder string }

// mostForms is how many forms of a secret are looked for: those of some values, as they are
// replaced, and of some logins with it.
const mostForms = 64

// variables returns the names of all variables that Attach may set.
func (g *Gate) variables() []string {
	names := variableNames()
	for _, s := range g.secrets {
		names = append(names, s.Env)
	}
	return names
}

func (g *Gate) newSwaps(key attachKey) (swaps []*swap) {
	for i := range g.secrets {
		s := &g.secrets[i]
		swaps = append(swaps, &swap{guarded: s,
			placeholder: s.Prefix + "sandshell" +
				strings.ToLower(key.text("placeholder "+s.Env))})
	}
	return swaps
}

// at reports whether the value goes to a host at all, in some request.
func (s *swap) at(w *wish) bool {
	return w.scheme != "http" && w.scheme != "ws" && slices.ContainsFunc(s.hosts,
		func(r Rule) bool { return r.matchesHost(w.host) && r.matchesPort("https", w.port) })
}

// goes reports whether the value goes into a request.
func (s *swap) goes(w *wish) bool {
	return slices.ContainsFunc(s.hosts, func(r Rule) bool { return r.allows(w) })
}

// current returns the value, and remembers its forms.
func (s *swap) current(ctx context.Context) (value string, err error) {
	err = guard.Call("Secret.Value", func() error {
		value, err = s.Value(ctx)
		return err
	})
	switch {
	case err != nil:
	case len(value) < leastSecret:
		err = fmt.Errorf("the value has less than %d characters", leastSecret)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		err = errors.New("the value has characters other than the printable ones of ASCII")
	}
	if err != nil {
		return "", err
	}
	for _, escape := range escapes {
		s.remember(form{escape(value), escape(s.placeholder)})
	}
	return value, nil
}

func (s *swap) remember(f form) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.forms, f); i >= 0 {
		s.forms = slices.Delete(s.forms, i, i+1) // it becomes the last one
	} else if len(s.forms) == mostForms {
		s.forms = s.forms[1:]
	}
	s.forms = append(slices.Clip(s.forms), f)
}

func (s *swap) known() []form {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.forms)
}
