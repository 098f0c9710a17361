package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/sandbox"
)

// A wayOut is what the flags say that a box may reach.
type wayOut struct {
	allow   []string
	secrets []egress.Secret
}

// egressFlags adds the flags that say what a box without a network may reach.
func (c *command) egressFlags() *wayOut {
	w := &wayOut{}
	c.Func("allow", "what the box may reach, as a `rule`: api.example.com, or \"GET "+
		"https://api.example.com/v1/*\"; the box has no other network; may be repeated",
		func(text string) error {
			_, err := egress.ParseRule(text)
			w.allow = append(w.allow, text)
			return err
		})
	c.Func("secret", "a variable of sandshell's own that programs of the box use and never see, "+
		"as `NAME=rule` with the rule for where it goes; may be repeated",
		func(text string) error {
			name, rule, ok := strings.Cut(text, "=")
			if !ok || name == "" || rule == "" {
				return errors.New("give NAME=rule, as in KEY=api.example.com")
			}
			_, err := egress.ParseRule(rule)
			for i := range w.secrets {
				if s := &w.secrets[i]; s.Env == name {
					s.Hosts = append(s.Hosts, rule)
					return err
				}
			}
			w.secrets = append(w.secrets, egress.Secret{Env: name, Hosts: []string{rule},
				Value: egress.FromEnv(name)})
			return err
		})
	return w
}

// gate returns the gate that the flags ask for, or nil, and takes the network from the spec.
func (w *wayOut) gate(s *sandbox.Spec, keep bool) (*egress.Gate, error) {
	switch {
	case len(w.allow) == 0 && len(w.secrets) == 0:
		return nil, nil
	case keep:
		return nil, usage("-allow: it holds while sandshell runs: leave out -keep and -detach")
	case s.Network != "" && s.Network != sandbox.NetworkNone:
		return nil, usage("-network is %q: with -allow, the box has none: leave out -network",
			s.Network)
	}
	s.Network = sandbox.NetworkNone
	gate, err := egress.New(egress.Config{Allow: egress.Rules(w.allow...), Secrets: w.secrets})
	if err != nil {
		return nil, usage("%s", w.asFlags(err.Error()))
	}
	for _, secret := range w.secrets {
		if os.Getenv(secret.Env) == "" {
			return nil, usage("-secret %[1]s: it is not set in sandshell's own environment: "+
				"export %[1]s=VALUE first", secret.Env)
		}
	}
	return gate, nil
}

// asFlags returns the text of an error about an egress.Config as one about the flags.
func (w *wayOut) asFlags(text string) string {
	text = strings.TrimPrefix(text, "egress: ")
	for i, secret := range w.secrets {
		for j := range secret.Hosts {
			text = strings.ReplaceAll(text, fmt.Sprintf("Config.Secrets[%d].Hosts[%d]", i, j),
				"-secret "+secret.Env)
		}
		text = strings.ReplaceAll(text, fmt.Sprintf("Config.Secrets[%d]", i), "-secret "+secret.Env)
	}
	return strings.ReplaceAll(text, "Config.Allow", "-allow")
}

// explain returns an error about the box's network as one about the flag -allow.
func (w *wayOut) explain(err error) error {
	var wrong *sandbox.SpecError
	if len(w.allow)+len(w.secrets) > 0 && errors.As(err, &wrong) && wrong.Field == "Network" {
		return usage("-allow: the box must have no other network, and this place cannot make "+
			"such boxes (%s)", wrong.Reason)
	}
	return specError(err)
}

// attachGate gives the box its way out, if there is a gate. The function that it returns tells the
// user which connections were refused.
func attachGate(ctx context.Context, gate *egress.Gate, box sandbox.Sandbox) (func(), error) {
	if gate == nil {
		return func() {}, nil
	}
	exit, err := gate.Attach(ctx, box)
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	return func() {
		said := map[string]bool{}
		for _, e := range exit.Denied() {
			if text := fmt.Sprintf("refused: %s", e.Denied); !said[text] {
				said[text] = true
				say(text)
			}
		}
	}, nil
}
