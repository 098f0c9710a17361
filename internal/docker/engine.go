package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// An Engine is a Docker engine, or one that speaks its API: 1.41 (Docker 20.10) is the oldest that
// is tested.
type Engine struct {
	*client.Client
	endpoint *endpoint
	ours     bool // to be closed
}

// Open connects to given or, if that is nil, to the engine that the docker command would use, and
// agrees with it on an API version.
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
		e.Client, e.endpoint, e.ours = c, at, true
	} else {
		e.endpoint = givenEndpoint(given)
	}
	if _, err := e.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		e.Close()
		return nil, e.unreachable(err)
	}
	return e, nil
}

// orphans belong to the process, not to an Engine: an Engine is closed with its box.
var orphans remotebox.Orphans

// Close lets go of the engine. A client that was given stays open.
func (e *Engine) Close() {
	if e.ours {
		e.Client.Close()
	}
}

// rest closes connections that are kept for further calls: a box that has started rarely has any,
// and two goroutines go with each.
func (e *Engine) rest() {
	if e.ours {
		e.Client.Close() // which is that, and no more
	}
}

// unreachable says which engine did not answer, and what to do.
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

// Address is where the engine is: unix://…, tcp://…, ssh://…. The client's own DaemonHost does not
// tell of ssh.
func (e *Engine) Address() string { return e.endpoint.address }

// DockerFlags are the flags with which the docker command reaches the engine, whatever its
// environment is.
func (e *Engine) DockerFlags() []string { return e.endpoint.flags }

// liveRestores caches liveRestore's answers by the engine's address.
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
