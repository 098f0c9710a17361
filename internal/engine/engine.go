package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/moby/moby/client"
)

// An Engine is a Docker engine, or one that speaks its API: 1.41 (Docker 20.10) is the oldest that is tested.
type Engine struct {
	*client.Client
	ours bool // to be closed
}

// Open connects to given or, if that is nil, to the engine that the environment names, and agrees with it on an API version.
func Open(ctx context.Context, given *client.Client) (*Engine, error) {
	e := &Engine{Client: given}
	if given == nil {
		if address := os.Getenv(client.EnvOverrideHost); strings.HasPrefix(address, "ssh://") {
			return nil, fmt.Errorf("DOCKER_HOST=%s: only the docker command understands ssh://; Dial that machine, "+
				"and set Config.Docker to a client with client.WithDialContext that uses the SSHBox's Dial to its /var/run/docker.sock", address)
		}
		c, err := client.New(client.FromEnv)
		if err != nil {
			return nil, fmt.Errorf("read the environment variables DOCKER_HOST, DOCKER_CERT_PATH, …: %w", err)
		}
		e.Client, e.ours = c, true
	}
	if _, err := e.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		e.Close()
		return nil, e.unreachable(err)
	}
	return e, nil
}

// Close lets go of the engine. A client that was given stays open.
func (e *Engine) Close() {
	if e.ours {
		e.Client.Close()
	}
}

// unreachable says which engine did not answer, and what to do.
func (e *Engine) unreachable(err error) error {
	advice := "start one, or set DOCKER_HOST to where it is (contexts of the docker command are not looked at); " +
		"without an engine there are localbox, and sshbox.Dial to another machine"
	if errors.Is(err, fs.ErrPermission) {
		advice = "this user may not use it: add the user to its group (usually docker), or use an engine of the user's own (rootless)"
	}
	return fmt.Errorf("no Docker engine answers at %s: %w; %s", e.DaemonHost(), err, advice)
}

// liveRestores caches liveRestore's answers by the engine's address.
var liveRestores sync.Map

// liveRestore reports whether the engine keeps containers while it restarts.
func (e *Engine) liveRestore(ctx context.Context) bool {
	if known, ok := liveRestores.Load(e.DaemonHost()); ok {
		return known.(bool)
	}
	info, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return false
	}
	liveRestores.Store(e.DaemonHost(), info.Info.LiveRestoreEnabled)
	return info.Info.LiveRestoreEnabled
}
