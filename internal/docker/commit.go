package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// snapshotRepository is the repository of the images that CommitFiles makes.
const snapshotRepository = "sandshell-snapshot"

// snapshotComment begins the comment of such an image.
const snapshotComment = "sandshell: the files of box "

// commitLimit bounds how long the engine may take for an image: a disk writes some 100 MB a second.
const commitLimit = 30 * time.Minute

// CommitFiles makes an image of a box's files, and returns its name. The image has neither the
// box's variables nor its labels, but those of the box's image, and the labels that are given.
//
// The engine takes from the container what the configuration of a commit leaves out. In the
// container, user, directory, main process, variables and labels are the box's, so CommitFiles sets
// them to those of the image.
func (e *Engine) CommitFiles(ctx context.Context, c *container.InspectResponse,
	labels map[string]string) (name string, err error) {
	if err := e.checkFiles(ctx, c); err != nil {
		return "", err
	}
	return e.commitFiles(ctx, c, labels)
}

// commitFiles is CommitFiles of a container whose files an image would have.
func (e *Engine) commitFiles(ctx context.Context, c *container.InspectResponse,
	labels map[string]string) (name string, err error) {
	base, err := e.baseImage(ctx, c)
	if err != nil {
		return "", err
	}
	if err := checkDepth(len(base.RootFS.Layers)); err != nil {
		return "", err
	}
	config := &container.Config{Labels: map[string]string{}}
	imageLabels, imageEnv := map[string]string{}, []string(nil)
	if b := base.Config; b != nil {
		config.User, config.WorkingDir = b.User, b.WorkingDir
		config.Entrypoint, config.Cmd = append([]string{}, b.Entrypoint...), b.Cmd
		imageLabels, imageEnv = b.Labels, b.Env
	}
	config.Env = envOf(imageEnv, c.Config.Env)
	// A commit cannot remove a label, so one that the image does not have becomes empty.
	for label := range c.Config.Labels {
		config.Labels[label] = imageLabels[label]
	}
	// The image is neither a snapshot nor temporary because the box's image is.
	for _, label := range []string{snapshotLabel, temporaryLabel} {
		if config.Labels[label] != "" {
			config.Labels[label] = ""
		}
	}
	for label, value := range labels {
		config.Labels[label] = value
	}
	key := config.Labels[snapshotLabel]
	if labels[snapshotLabel] == "" {
		key = newSnapshotKey()
	}
	name = snapshotRepository + ":" + key
	// The engine may finish a cancelled commit.
	committing, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitLimit)
	defer cancel()
	begun := time.Now()
	if err := e.CommitAs(committing, c.ID, name, snapshotComment+
		strings.TrimPrefix(c.Name, "/"), config); err != nil {
		return "", fmt.Errorf("make an image of the container: %w", err)
	}
	if comparesTimes(c) {
		// No box of this image is to change a file in the second in which it was changed here.
		select {
		case <-time.After(time.Second - time.Since(begun)):
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		err := e.removeImage(committing, name)
		return "", errors.Join(ctxerr.Of(ctx), err)
	}
	if s := c.State; s != nil && s.Running && !s.Paused {
		Settle(ctx, e.Client, c.ID) // the engine paused it during the commit
	}
	return name, nil
}

// newSnapshotKey returns a tag for an image of snapshotRepository.
func newSnapshotKey() string { return strings.ToLower(rand.Text()) }

// comparesTimes reports whether the engine finds what a container has changed by the sizes of its
// files and their times, in whole seconds. (moby's NaiveDiffDriver, which all storage drivers use
// but overlay2.) It then misses a change that keeps both.
func comparesTimes(c *container.InspectResponse) bool {
	if c.GraphDriver == nil { // containerd's
		return false
	}
	switch c.GraphDriver.Name {
	case "overlay2", "overlayfs", "windowsfilter":
		return false
	}
	return true
}

// baseImage inspects the image that a container was made of.
func (e *Engine) baseImage(ctx context.Context,
	c *container.InspectResponse) (base client.ImageInspectResult, err error) {
	base, err = e.ImageInspect(ctx, c.Image)
	switch {
	case errdefs.IsNotFound(err): // the caller would take it for the container
		err = errors.New("the box's image has been removed from the engine")
	case err != nil:
		err = fmt.Errorf("inspect the box's image: %w", err)
	}
	return base, err
}

// maxDepth is how many layers an image may have (maxLayerDepth in moby's layer store).
const maxDepth = 125

// checkDepth returns an error if an image of so many layers can get no further one.
func checkDepth(layers int) error {
	if layers < maxDepth {
		return nil
	}
	return fmt.Errorf("the box's image has %d layers, and the engine allows no more than %d: go "+
		"back to an earlier snapshot and take the next one from there, or make an image of one "+
		"layer of this one (docker export | docker import)", layers, maxDepth)
}

// envOf returns the variables of an image for a commit of a container that has those of box. A
// commit cannot remove a variable, so one that the image does not have becomes empty.
func envOf(image, box []string) (env []string) {
	values := map[string]string{}
	for _, kv := range image {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	for _, kv := range box {
		name, _, _ := strings.Cut(kv, "=")
		env = append(env, name+"="+values[name])
	}
	return env
}

// plainRuntime is the runtime that every Docker engine has.
const plainRuntime = "runc"

// gVisorFiles begins the name of the file in which gVisor keeps what a container has changed,
// unless it was started with --overlay2=none.
const gVisorFiles = "/.gvisor.filestore."

// checkFiles returns an error if an image of the container would not have its files.
func (e *Engine) checkFiles(ctx context.Context, c *container.InspectResponse) error {
	if c.HostConfig == nil || c.HostConfig.Runtime == plainRuntime {
		return nil
	}
	diff, err := e.ContainerDiff(ctx, c.ID, client.ContainerDiffOptions{})
	if err != nil {
		return fmt.Errorf("look for what the container has changed: %w", err)
	}
	for _, change := range diff.Changes {
		if strings.HasPrefix(change.Path, gVisorFiles) {
			return filesElsewhere(c, change.Path)
		}
	}
	return nil
}

// filesElsewhere says that the runtime keeps a box's files in a file of its own.
func filesElsewhere(c *container.InspectResponse, file string) error {
	return fmt.Errorf("%w: the runtime %q keeps the box's files in %s, where no image gets them: "+
		"start runsc with --overlay2=none", errors.ErrUnsupported, c.HostConfig.Runtime, file)
}
