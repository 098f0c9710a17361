package sshbox

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// An Engine is a Docker engine and the boxes on it, of all programs. The zero value is the engine
// that the docker command would use: see Config.Docker. Its methods may be called from several
// goroutines.
type Engine struct {
	// Docker is the engine to use: see Config.Docker.
	Docker DockerClient
	// Logger gets events that are in no result, and at debug level each command of the boxes that
	// Attach returns. If Logger is nil, nothing is logged.
	Logger *slog.Logger
}

// A DockerClient is a client of a Docker engine. It must be a *client.Client of
// github.com/moby/moby/client. With any other type, the call that uses it returns an error.
type DockerClient interface {
	// DaemonHost returns the engine's address.
	DaemonHost() string
	// Close closes the client. Boxes and Engines do not call it: the caller closes its own client.
	Close() error
}

// openEngine connects to the engine of a client, which a field holds. nil stands for the engine
// that the docker command would use.
func openEngine(ctx context.Context, field string, d DockerClient) (*docker.Engine, error) {
	if err := remotebox.CheckContext(ctx); err != nil {
		return nil, err
	}
	c, ok := d.(*client.Client)
	if d != nil && !ok {
		return nil, fmt.Errorf("%s: it is a %T: give a *client.Client of "+
			"github.com/moby/moby/client", field, d)
	}
	return docker.Open(ctx, c)
}

func (e Engine) open(ctx context.Context) (*docker.Engine, error) {
	opened, err := openEngine(ctx, "Engine.Docker", e.Docker)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	return opened, nil
}

func (e Engine) log() *slog.Logger { return guard.Logger(e.Logger) }

// ImageID returns the id of an image on the engine, as docker inspect shows it. If the engine has
// no image of that name, errdefs.IsNotFound (github.com/containerd/errdefs) reports true for the
// error.
func (e Engine) ImageID(ctx context.Context, name string) (string, error) {
	engine, err := e.open(ctx)
	if err != nil {
		return "", err
	}
	defer engine.Close()
	id, err := engine.ImageID(ctx, name)
	if err != nil {
		return "", fmt.Errorf("sshbox: image %q: %w", name, err)
	}
	return id, nil
}
