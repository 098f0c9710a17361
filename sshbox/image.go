package sshbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// An image is what the container has from its image.
type image struct {
	id            string
	user, workDir string
	env           []string
	os, arch      string
	entrypoint    []string
	command       []string
}

// image makes sure that the image is there.
func (e *engine) image(ctx context.Context, c Config) (*image, error) {
	if c.Pull == PullAlways {
		if err := e.pull(ctx, c); err != nil {
			return nil, err
		}
	}
	inspected, err := e.inspect(ctx, c)
	if errdefs.IsNotFound(err) && c.Pull == PullMissing {
		if err := e.pull(ctx, c); err != nil {
			return nil, err
		}
		inspected, err = e.inspect(ctx, c)
	}
	switch {
	case errdefs.IsNotFound(err):
		return nil, fmt.Errorf("image %q is not there, and Pull does not allow to pull it: docker pull %s, or another policy: %w", c.Image, c.Image, err)
	case err != nil:
		return nil, fmt.Errorf("image %q: %w", c.Image, err)
	case inspected.Config == nil:
		return &image{id: inspected.ID, os: inspected.Os, arch: inspected.Architecture}, nil
	}
	config := inspected.Config
	return &image{
		id: inspected.ID, user: config.User, workDir: config.WorkingDir, env: config.Env, os: inspected.Os, arch: inspected.Architecture,
		entrypoint: config.Entrypoint, command: config.Cmd,
	}, nil
}

// inspect looks the image up. One of another platform than that asked for is none.
func (e *engine) inspect(ctx context.Context, c Config) (client.ImageInspectResult, error) {
	inspected, err := e.ImageInspect(ctx, c.Image)
	if err != nil || c.Platform == "" {
		return inspected, err
	}
	p, err := parsePlatform(c.Platform)
	if err != nil {
		return inspected, err
	}
	if inspected.Os != p.OS || inspected.Architecture != p.Architecture || p.Variant != "" && inspected.Variant != p.Variant {
		return inspected, errdefs.ErrNotFound.WithMessage("it is there for another platform: " + inspected.Os + "/" + inspected.Architecture)
	}
	return inspected, nil
}

// pull pulls the image and reports progress.
func (e *engine) pull(ctx context.Context, c Config) error {
	fail := func(err error) error {
		if ctx.Err() != nil {
			return fmt.Errorf("pull image %q: %w", c.Image, ctx.Err())
		}
		return fmt.Errorf("pull image %q: %w (is the name right, is the registry reachable from the engine, does it want Config.RegistryAuth?)",
			c.Image, err)
	}
	options := client.ImagePullOptions{RegistryAuth: c.RegistryAuth}
	if c.Platform != "" {
		p, err := parsePlatform(c.Platform)
		if err != nil {
			return err
		}
		options.Platforms = []ocispec.Platform{*p}
	}
	stream, err := e.ImagePull(ctx, c.Image, options)
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
		case c.Progress != nil:
			p := PullProgress{Image: c.Image, Layer: message.ID, Status: message.Status}
			if message.Progress != nil {
				p.Done, p.Total = message.Progress.Current, message.Progress.Total
			}
			c.Progress(p)
		}
	}
	return nil
}

// parsePlatform reads "os/arch" or "os/arch/variant".
func parsePlatform(s string) (*ocispec.Platform, error) {
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return nil, fmt.Errorf("platform %q: it is to be \"os/arch\" or \"os/arch/variant\", as linux/arm64", s)
	}
	p := &ocispec.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}
