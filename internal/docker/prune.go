package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/bin"
)

// Pruned is what Prune has removed.
type Pruned struct {
	Images  []string // the names of images with plugins, of built images, and of snapshots
	Volumes []string // package caches, and boxd of other versions
}

// Prune removes what is kept for later boxes: images with plugins, built images, snapshots, package
// caches, and volumes with boxd of other versions. If images are given, base images by name or id,
// Prune removes only what was made for those, and a built image only if it is one of them. It
// leaves what a container uses.
func (e *Engine) Prune(ctx context.Context, images []string) (Pruned, error) {
	var pruned Pruned
	wanted := slices.Clone(images)
	for _, name := range images {
		if inspected, err := e.ImageInspect(ctx, name); err == nil {
			wanted = append(wanted, inspected.ID)
		}
	}
	want := func(labels map[string]string, base string) bool {
		return len(images) == 0 || slices.Contains(wanted, labels[base]) ||
			slices.Contains(wanted, labels[keptImageLabel])
	}
	var errs []error
	remove := func(list *[]string, name string, err error) {
		switch {
		case err == nil:
			*list = append(*list, name)
		case errdefs.IsNotFound(err), errdefs.IsConflict(err): // already removed, or in use
		default:
			errs = append(errs, fmt.Errorf("remove %s: %w", name, err))
		}
	}

	built, err := e.ImageList(ctx, client.ImageListOptions{
		Filters: client.Filters{}.Add("label", builtLabel)})
	if err != nil {
		return pruned, fmt.Errorf("list built images: %w", err)
	}
	for _, image := range built.Items {
		name := builtRepository + ":" + image.Labels[builtLabel]
		if tagged(image.RepoTags, name) && (len(images) == 0 || slices.Contains(wanted, name) ||
			slices.Contains(wanted, image.ID)) {
			err := e.removeImage(ctx, name)
			remove(&pruned.Images, name, err)
		}
	}
	kept, err := e.ImageList(ctx, client.ImageListOptions{
		Filters: client.Filters{}.Add("label", keptLabel)})
	if err != nil {
		return pruned, fmt.Errorf("list images with plugins: %w", err)
	}
	for _, image := range kept.Items {
		// An image that a user has made from a kept one has the same labels, but not the name.
		name := keptRepository + ":" + image.Labels[keptLabel]
		if tagged(image.RepoTags, name) && want(image.Labels, keptBaseLabel) {
			err := e.removeImage(ctx, name)
			remove(&pruned.Images, name, err)
		}
	}
	snapshots, err := e.listSnapshots(ctx)
	if err != nil {
		return pruned, err
	}
	for _, image := range snapshots {
		if name := snapshotName(image.Labels); want(image.Labels, keptBaseLabel) {
			err := e.removeImage(ctx, name)
			if err == nil || errdefs.IsNotFound(err) {
				err = e.removeKeeper(ctx, name)
			}
			remove(&pruned.Images, name, err)
		}
	}
	for _, label := range []string{cacheLabel, boxdLabel} {
		volumes, err := e.VolumeList(ctx, client.VolumeListOptions{
			Filters: client.Filters{}.Add("label", label)})
		if err != nil {
			errs = append(errs, fmt.Errorf("list volumes: %w", err))
			continue
		}
		for _, v := range volumes.Items {
			if label == boxdLabel && (len(images) > 0 || current(v.Labels[boxdLabel])) ||
				label == cacheLabel && !want(v.Labels, cacheLabel) {
				continue
			}
			_, err := e.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{})
			remove(&pruned.Volumes, v.Name, err)
		}
	}
	return pruned, errors.Join(errs...)
}

// tagged reports whether an image has a name. Podman adds a registry to a name without one:
// localhost when it builds an image, docker.io when it commits a container.
func tagged(tags []string, name string) bool {
	return slices.Contains(tags, name) || slices.Contains(tags, "localhost/"+name) ||
		slices.Contains(tags, "docker.io/library/"+name)
}

// current reports whether this library has the boxd with that checksum.
func current(sum string) bool {
	return slices.ContainsFunc(bin.Architectures, func(arch string) bool {
		return bin.For(arch).Sum == sum
	})
}
