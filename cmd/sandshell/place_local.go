package main

import (
	"context"
	"errors"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// local is this machine.
type local struct{}

// errNothingKept says why there is nothing to list.
var errNothingKept = errors.New("a box on this machine ends with its sandshell, so there are " +
	"none to find: use another -place, such as docker")

func (local) place(o making) (sandbox.Place, error) {
	switch {
	case o.keep:
		return nil, usage("a box on this machine cannot be kept: use another -place, such as " +
			"docker")
	case o.pull != "":
		return nil, usage("-pull is for images, and this machine has none: leave it out")
	}
	return localbox.Place{}, nil
}

func (local) name(sandbox.Sandbox) string { return "" }

func (local) list(context.Context) ([]boxInfo, error) { return nil, errNothingKept }

func (local) join(context.Context, string) (sandbox.Sandbox, error) { return nil, errNothingKept }

func (local) remove(context.Context, string) error { return errNothingKept }

func (local) reap(ctx context.Context) (int, error) { return localbox.Reap(ctx) }

func (local) prune(context.Context) (pruned, error) { return pruned{}, nil }

func (local) hasImages() bool { return false }
