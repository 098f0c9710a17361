package sshbox

import (
	"context"
	"fmt"
	"io"

	"github.com/sandshell/sandshell/internal/docker"
)

// A Build says what an image is made of: what "docker build" gets.
type Build struct {
	// Dir is a directory on this machine, all of which the engine gets: COPY and ADD take from it.
	// A .dockerignore changes nothing.
	Dir string
	// Dockerfile is the path in Dir of the file with the steps. Default: Dockerfile. The engine's
	// own builder reads it, not BuildKit: it knows no here-documents and no RUN --mount.
	Dockerfile string
	// Log gets what the engine says of the steps, one Write at a time. Default: nobody.
	Log io.Writer
}

// A BuildError is what a step of a Dockerfile, or the Dockerfile itself, has failed with: to build
// it again as it is would be in vain. (An engine that does not answer is another error.)
type BuildError = docker.BuildError

// BuildImage builds an image for Config.Image, and returns its name. The name is the content's:
// what has been built once, from whatever directory, is there already, until Prune. (So a step that
// downloads something is not run again either.)
func (e Engine) BuildImage(ctx context.Context, b Build) (name string, err error) {
	opened, err := e.open(ctx)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	name, err = opened.BuildImage(ctx, docker.Build{Dir: b.Dir, Dockerfile: b.Dockerfile,
		Log: b.Log})
	if err != nil {
		return "", fmt.Errorf("sshbox: %w", err)
	}
	return name, nil
}
