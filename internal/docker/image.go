package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// An Image is an image's id, and what a container gets from the image.
type Image struct {
	ID            string
	User, WorkDir string
	Env           []string
	OS, Arch      string
	Entrypoint    []string
	Command       []string
}

// A Source says which image to use, and when to pull it.
type Source struct {
	Name         string
	Pull         Pull
	Platform     string               // "os/arch" or "os/arch/variant"; "": the engine's own
	RegistryAuth string               // as in the header X-Registry-Auth of the engine's API
	Progress     func(Progress) error // an error ends the pull
}

// A Pull says when an image is pulled.
type Pull string

// The values of Pull, as in package sshbox.
const (
	PullMissing Pull = ""
	PullAlways  Pull = "always"
	PullNever   Pull = "never"
)

// Progress is how far the pulling of an image has got.
type Progress struct {
	Image, Layer, Status string
	Done, Total          int64
}

// Image returns an image of the engine. It pulls the image if s.Pull says so.
func (e *Engine) Image(ctx context.Context, s Source) (*Image, error) {
	if s.Pull == PullAlways {
		if err := e.pull(ctx, s); err != nil {
			return nil, err
		}
	}
	inspected, err := e.inspectImage(ctx, s)
	if errdefs.IsNotFound(err) && s.Pull == PullMissing {
		if err := e.pull(ctx, s); err != nil {
			return nil, err
		}
		inspected, err = e.inspectImage(ctx, s)
	}
	switch {
	case errdefs.IsNotFound(err):
		return nil, fmt.Errorf("image %q is not there, and Config.Pull forbids pulling: make it, "+
			"run docker pull %s, or set another Pull: %w", s.Name, s.Name, err)
	case err != nil:
		return nil, fmt.Errorf("image %q: %w", s.Name, err)
	case inspected.Config == nil:
		return &Image{ID: inspected.ID, OS: inspected.Os, Arch: inspected.Architecture}, nil
	}
	config := inspected.Config
	return &Image{
		ID: inspected.ID, User: config.User, WorkDir: config.WorkingDir, Env: config.Env,
		OS: inspected.Os, Arch: inspected.Architecture,
		Entrypoint: config.Entrypoint, Command: config.Cmd,
	}, nil
}

// ImageID returns the id of an image of the engine.
func (e *Engine) ImageID(ctx context.Context, name string) (string, error) {
	inspected, err := e.ImageInspect(ctx, name)
	return inspected.ID, err
}

// inspectImage inspects the image. An image for another platform than s.Platform counts as missing.
func (e *Engine) inspectImage(ctx context.Context, s Source) (client.ImageInspectResult, error) {
	inspected, err := e.ImageInspect(ctx, s.Name)
	if err != nil || s.Platform == "" {
		return inspected, err
	}
	p, err := ParsePlatform(s.Platform)
	if err != nil {
		return inspected, err
	}
	if inspected.Os != p.OS || inspected.Architecture != p.Architecture || p.Variant != "" &&
		inspected.Variant != p.Variant {
		return inspected, errdefs.ErrNotFound.WithMessage("it is there for another platform: " +
			inspected.Os + "/" + inspected.Architecture)
	}
	return inspected, nil
}

// pull pulls the image and reports progress.
func (e *Engine) pull(ctx context.Context, s Source) error {
	fail := func(err error) error {
		if ctx.Err() != nil {
			return fmt.Errorf("pull image %q: %w", s.Name, ctxerr.Of(ctx))
		}
		return fmt.Errorf("pull image %q: %w: check the name, whether the engine reaches the "+
			"registry, and Config.RegistryAuth",
			s.Name, err)
	}
	fail = notFoundOr(fail)
	options := client.ImagePullOptions{RegistryAuth: s.RegistryAuth}
	if s.Platform != "" {
		p, err := ParsePlatform(s.Platform)
		if err != nil {
			return err
		}
		options.Platforms = []ocispec.Platform{*p}
	}
	stream, err := e.ImagePull(ctx, s.Name, options)
	if err != nil {
		return fail(err)
	}
	defer stream.Close()
	for message, err := range stream.JSONMessages(ctx) {
		switch {
		case err != nil:
			return fail(err)
		case message.Error != nil:
			return fail(errors.New(message.Error.Message))
		case s.Progress != nil:
			p := Progress{Image: s.Name, Layer: message.ID, Status: message.Status}
			if message.Progress != nil {
				p.Done, p.Total = message.Progress.Current, message.Progress.Total
			}
			if err := s.Progress(p); err != nil {
				return fmt.Errorf("pull image %q: %w", s.Name, err)
			}
		}
	}
	return nil
}

// notFoundOr returns a function that calls fail and marks the error as not found if the registry
// has no such image. The engine passes on the registry's words without their kind.
func notFoundOr(fail func(error) error) func(error) error {
	return func(err error) error {
		said := err.Error()
		for _, code := range registryHasNone {
			if strings.Contains(strings.ToLower(said), code) {
				return missingImage{fail(err)}
			}
		}
		return fail(err)
	}
}

// registryHasNone are the messages for MANIFEST_UNKNOWN and NAME_UNKNOWN in OCI's distribution
// specification, and in registries.
var registryHasNone = []string{
	"manifest unknown", "name unknown", "repository name not known to registry",
}

// A missingImage is an error for which errdefs.IsNotFound reports true.
type missingImage struct{ error }

func (e missingImage) NotFound()     {}
func (e missingImage) Unwrap() error { return e.error }

// ParsePlatform reads "os/arch" or "os/arch/variant".
func ParsePlatform(s string) (*ocispec.Platform, error) {
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return nil, fmt.Errorf("%q is no platform: give \"os/arch\" or \"os/arch/variant\", as "+
			"linux/arm64", s)
	}
	p := &ocispec.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}
