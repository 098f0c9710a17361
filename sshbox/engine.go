package sshbox

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/guard"
)

// An Engine is a Docker engine with boxes on it, whoever made them. The zero value is the engine
// that the docker command would use: see Config.Docker. Its methods may be called from several
// goroutines.
type Engine struct {
	// Docker is the engine to use; see Config.Docker.
	Docker DockerClient
	// Logger gets what happens beside the results, and at debug level each command of the boxes
	// that Attach returns. Default: none.
	Logger *slog.Logger
}

// A DockerClient is a client of a Docker engine. It has to be a *client.Client of
// github.com/moby/moby/client; any other is an error of the call that uses it.
type DockerClient interface {
	// DaemonHost is the engine's address.
	DaemonHost() string
	Close() error
}

// openEngine connects to the engine of a client; nil is the default engine.
func openEngine(ctx context.Context, d DockerClient) (*docker.Engine, error) {
	c, ok := d.(*client.Client)
	if d != nil && !ok {
		return nil, fmt.Errorf("Config.Docker is a %T: give a *client.Client of "+
			"github.com/moby/moby/client", d)
	}
	return docker.Open(ctx, c)
}

// open connects to the engine.
func (e Engine) open(ctx context.Context) (*docker.Engine, error) {
	opened, err := openEngine(ctx, e.Docker)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	return opened, nil
}

func (e Engine) log() *slog.Logger { return guard.Logger(e.Logger) }

// ImageID returns the id of an image on the engine, as docker inspect shows it. If the engine has
// no image of that name, the error is one of errdefs.IsNotFound (github.com/containerd/errdefs).
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
