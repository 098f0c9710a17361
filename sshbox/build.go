package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/sandshell/sandshell/internal/docker"
)

// A Build says what an image is made of, as for "docker build".
type Build struct {
	// Dir is a directory on this machine. The engine gets all of it, for COPY and ADD. A
	// .dockerignore has no effect.
	Dir string
	// Dockerfile is the path in Dir of the file with the steps. The engine's own builder reads it,
	// not BuildKit, so here-documents and RUN --mount do not work. Default: "Dockerfile".
	Dockerfile string
	// Log gets what the engine prints about the steps, one Write at a time. If Log is nil, it is
	// discarded.
	Log io.Writer
}

// A BuildError says that a Dockerfile is wrong, or that one of its steps has failed. The same build
// would fail again. If the engine does not answer, the error is not a BuildError.
type BuildError struct {
	Dockerfile string // its path on this machine
	Message    string // the engine's message, unchanged
}

// Error returns the path of the Dockerfile and the engine's message, without control characters.
func (e *BuildError) Error() string { return (*docker.BuildError)(e).Error() }

// Is reports whether target is errdefs.ErrInvalidArgument of github.com/containerd/errdefs.
func (e *BuildError) Is(target error) bool { return target == errdefs.ErrInvalidArgument }

// BuildImage builds an image for Config.Image, and returns its name, which has a digest of the
// content. If the engine has an image of the same content, from whatever directory, BuildImage does
// not build it again. So a step that downloads something does not run again until Prune.
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
