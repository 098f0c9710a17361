package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools"
)

// addSecret adds the secret of a flag -secret NAME=rule.
func (s *settings) addSecret(text string) error {
	name, rule, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("give NAME=rule, as in KEY=api.example.com")
	}
	if os.Getenv(name) == "" {
		return fmt.Errorf("%[1]s is not set here: export %[1]s=VALUE first", name)
	}
	s.secrets = append(s.secrets, egress.Secret{Env: name, Value: egress.FromEnv(name),
		Hosts: []string{rule}})
	return nil
}

// gate returns the way out of all boxes, or nil if they have none.
func (s *settings) gate() (*egress.Gate, error) {
	if len(s.allow)+len(s.secrets) == 0 {
		return nil, nil
	}
	if s.local || s.network != "none" {
		return nil, errors.New("-allow: the box must have no other network: leave out -local and " +
			"-network")
	}
	return egress.New(egress.Config{Allow: egress.Rules(s.allow...), Secrets: s.secrets})
}

// boxTools returns the tools of a box, which may have a way out. They close the box.
func boxTools(ctx context.Context, box sandbox.Sandbox, gate *egress.Gate) (*tools.Set, error) {
	var c tools.Config
	if gate != nil {
		exit, err := gate.Attach(ctx, box)
		if err != nil {
			return nil, errors.Join(err, box.Close())
		}
		c.Egress = exit
	}
	return tools.New(tools.Box(box, c), tools.Closing(box.Close))
}
