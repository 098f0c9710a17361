package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// An Engine is a connection to a Docker engine, or to another engine with its API. The oldest API
// that is tested is 1.41 (Docker 20.10).
type Engine struct {
	*client.Client
	endpoint *endpoint
	owned    bool // Close closes the Client
}

// Open connects to the engine of a client. If given is nil, it connects to the engine that the
// docker command would use. Open agrees with the engine on an API version.
func Open(ctx context.Context, given *client.Client) (*Engine, error) {
	e := &Engine{Client: given}
	if given == nil {
		at, err := currentEndpoint()
		if err != nil {
			return nil, err
		}
		c, err := client.New(at.options...)
		if err != nil {
			return nil, fmt.Errorf("make a client for the engine at %s: %w", at.address, err)
		}
		e.Client, e.endpoint, e.owned = c, at, true
	} else {
		e.endpoint = givenEndpoint(given)
	}
	if _, err := e.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		e.Close()
		if ctx.Err() != nil {
			return nil, ctxerr.Of(ctx)
		}
		return nil, e.unreachable(err)
	}
	return e, nil
}

// orphans are this process's, on all engines. They cannot belong to an Engine, because each box has
// an Engine of its own, which is closed with the box.
var orphans remotebox.Orphans

// Close closes the connections to the engine. A client that was given to Open stays open.
func (e *Engine) Close() {
	if e.owned {
		e.Client.Close()
	}
}

// closeIdle closes idle connections. A box that has started rarely calls the engine, and each
// connection keeps two goroutines.
func (e *Engine) closeIdle() {
	if e.owned {
		e.Client.Close() // closes idle connections only; the client stays usable
	}
}

// unreachable returns an error that says which engine did not answer, and what to do.
func (e *Engine) unreachable(err error) error {
	advice := "start one, or set DOCKER_HOST or DOCKER_CONTEXT to where it is; " +
		"without an engine there are localbox, and sshbox.Dial to another machine"
	if errors.Is(err, fs.ErrPermission) {
		advice = "this user may not use it: add the user to its group (usually docker), or use " +
			"an engine of the user's own (rootless)"
	}
	where := e.Address()
	if e.endpoint.context != "" {
		where += fmt.Sprintf(" (docker context %q)", e.endpoint.context)
	}
	return fmt.Errorf("no Docker engine answers at %s: %w; %s", where, err, advice)
}

// Address returns the engine's address: unix://…, tcp://… or ssh://…. The client's DaemonHost does
// not return ssh addresses.
func (e *Engine) Address() string { return e.endpoint.address }

// DockerFlags returns the flags with which the docker command reaches the engine in any
// environment.
func (e *Engine) DockerFlags() []string { return e.endpoint.flags }

// abilities are what an engine can do.
type abilities struct {
	liveRestore bool // it keeps containers while it restarts

	// What it can limit. A rootless engine without control groups makes containers without the
	// limits, and does not even warn.
	memory, cpus, pids bool
}

// known has the abilities of engines, by their addresses. It is global because each box has an
// Engine of its own.
var known sync.Map

// abilities returns what the engine can do. If the engine does not tell, it is taken for one that
// can limit.
func (e *Engine) abilities(ctx context.Context) abilities {
	if a, ok := known.Load(e.Address()); ok {
		return a.(abilities)
	}
	r, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return abilities{memory: true, cpus: true, pids: true}
	}
	a := abilities{liveRestore: r.Info.LiveRestoreEnabled, memory: r.Info.MemoryLimit,
		cpus: r.Info.CPUCfsQuota, pids: r.Info.PidsLimit}
	known.Store(e.Address(), a)
	return a
}

// A LimitError says that the engine cannot hold a limit. It is errors.ErrUnsupported.
type LimitError struct {
	Field string // of the Config, such as "Memory"
	of    string // what the field limits
}

func (e *LimitError) Error() string { return "Config." + e.Field + ": " + e.Reason() }

// Reason returns why, and what to do.
func (e *LimitError) Reason() string {
	return "the engine cannot limit " + e.of + ": leave it out, or use another engine (docker " +
		"info tells what this one lacks; a rootless one needs cgroup v2 and systemd)"
}

func (e *LimitError) Is(target error) bool { return target == errors.ErrUnsupported }

// CheckLimits returns a *LimitError if s has a limit that the engine cannot hold. The caller may
// rely on the limit.
func (e *Engine) CheckLimits(ctx context.Context, s Spec) error {
	a := e.abilities(ctx)
	switch limitsPIDs := s.Host.PidsLimit != nil && *s.Host.PidsLimit > 0; {
	case s.Host.Memory > 0 && !a.memory:
		return &LimitError{"Memory", "memory"}
	case s.Host.NanoCPUs > 0 && !a.cpus:
		return &LimitError{"CPUs", "processor time"}
	case limitsPIDs && !a.pids && !s.AnyPIDs:
		return &LimitError{"PIDs", "processes"}
	}
	return nil
}
