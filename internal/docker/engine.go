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

// liveRestores caches what liveRestore returns, by the engine's address. It is global because each
// box has an Engine of its own.
var liveRestores sync.Map

// liveRestore reports whether the engine keeps containers while it restarts.
func (e *Engine) liveRestore(ctx context.Context) bool {
	if known, ok := liveRestores.Load(e.Address()); ok {
		return known.(bool)
	}
	info, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return false
	}
	liveRestores.Store(e.Address(), info.Info.LiveRestoreEnabled)
	return info.Info.LiveRestoreEnabled
}
