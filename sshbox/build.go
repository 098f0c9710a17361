package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sandshell/sandshell/internal/docker"
)

// A Build says what an image is made of, as "docker build" takes it.
type Build struct {
	// Dir is a directory on this machine. The engine gets all of it, for COPY and ADD. A
	// .dockerignore has no effect.
	Dir string
	// Dockerfile is the path in Dir of the file with the steps. The engine's own builder reads it,
	// not BuildKit, so here-documents and RUN --mount do not work. Default: Dockerfile.
	Dockerfile string
	// Log gets what the engine prints about the steps, one Write at a time. Default: none.
	Log io.Writer
}

// A BuildError says that a step of a Dockerfile, or the Dockerfile itself, has failed. To build it
// again unchanged would be in vain. If the engine does not answer, the error is another one.
type BuildError struct {
	Dockerfile string
	Message    string // the engine's, as it is
}

func (e *BuildError) Error() string { return (*docker.BuildError)(e).Error() }

// BuildImage builds an image for Config.Image, and returns its name, which is a digest of the
// content. What has been built once, from whatever directory, is not built again until Prune. So a
// step that downloads something is not run again either.
func (e Engine) BuildImage(ctx context.Context, b Build) (name string, err error) {
	opened, err := e.open(ctx)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	name, err = opened.BuildImage(ctx, docker.Build{Dir: b.Dir, Dockerfile: b.Dockerfile,
		Log: b.Log})
	var failed *docker.BuildError
	if errors.As(err, &failed) {
		err = (*BuildError)(failed)
	}
	if err != nil {
		return "", fmt.Errorf("sshbox: %w", err)
	}
	return name, nil
}
