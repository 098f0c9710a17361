package sshbox

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
)

// containerScript is what the container's main process does.
//
//go:embed container.sh
var containerScript string

// sshdMain makes the image's sshd the main process.
func sshdMain(config *container.Config, host *container.HostConfig) {
	config.User = "0:0" // sshd's; the user's programs are the user's
	// Should this program be killed, the standard input ends, and with it the sshd and the container.
	config.OpenStdin, config.StdinOnce = true, true
	config.AttachStdin, config.AttachStdout, config.AttachStderr = true, true, true
	config.Entrypoint = containerCommand
	init := true
	host.Init = &init
	host.LogConfig = container.LogConfig{Type: "none"} // its output is the SSH connection
}

// containerCommand is the container's main process. It reads the script instead of having it as an argument, because
// process 1 keeps its arguments, and everybody who looks at the container's processes would see all of it.
var containerCommand = []string{"/bin/sh", "-c", `while IFS= read -r l && [ "$l" != . ]; do s="$s$l
"; done; eval "$s"`}

// A containerHandle is a container of ours, from before its creation until after its removal.
type containerHandle struct {
	engine *engine
	image  string
	name   string
	box    string // the label that tells it from any other
	id     string // "" until it is known
	memory int64  // its limit; 0 is none
	keep   bool
	server Server
	linger time.Duration
}

// needed are the capabilities without which OpenSSH's sshd does not work: to become the user, to confine its
// unprivileged part, and, as Debian builds it, to tell the audit system of a login (its refusal is fatal to a login
// of root).
var needed = []string{"CAP_SETUID", "CAP_SETGID", "CAP_SYS_CHROOT", "CAP_AUDIT_WRITE"}

// neededForUser is what it needs beside that to hand a terminal to a user other than root.
const neededForUser = "CAP_CHOWN"

// usual are those that a package manager needs.
var usual = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL"}

// capabilities is what the container has in the end, if all runs as user.
func (c Config) capabilities(user string) []string {
	needed, usual := slices.Clone(needed), slices.Clone(usual)
	if c.Server == Boxd { // needs none: they are what package managers use
		needed, usual = nil, slices.Concat(usual, needed[:2])
	} else if user != "root" && user != "0" {
		needed = append(needed, neededForUser)
	}
	canonical := func(names []string) []string {
		var all []string
		for _, name := range names {
			if name = strings.ToUpper(name); name != "ALL" && !strings.HasPrefix(name, "CAP_") {
				name = "CAP_" + name
			}
			all = append(all, name)
		}
		return all
	}
	add, drop := canonical(c.CapAdd), canonical(c.CapDrop)
	if slices.Contains(add, "ALL") {
		return []string{"ALL"} // and drop is left to the engine
	}
	caps := slices.Concat(needed, add)
	if !slices.Contains(drop, "ALL") {
		caps = append(caps, usual...)
		caps = slices.DeleteFunc(caps, func(name string) bool { return slices.Contains(drop, name) && !slices.Contains(needed, name) })
	}
	slices.Sort(caps)
	return slices.Compact(caps)
}

// create creates the container, with what main makes its main process. If it fails, there may be one all the same: remove does what is
// right.
func (h *containerHandle) create(ctx context.Context, c Config, user string, main func(*container.Config, *container.HostConfig)) error {
	mounts, tmpfs, err := c.mounts(h.engine.DaemonHost())
	if err != nil {
		return err
	}
	pids := max(c.PIDs, -1)
	config := &container.Config{
		Image: c.Image, Hostname: c.Hostname,
		Env:         c.environ(),
		Labels:      h.labels(c.Labels),
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}, // the image's asks for what the entrypoint would have started
	}
	host := &container.HostConfig{
		NetworkMode:    container.NetworkMode(c.Network),
		ExtraHosts:     c.ExtraHosts,
		Mounts:         slices.Concat(mounts, c.own),
		Tmpfs:          tmpfs,
		ReadonlyRootfs: c.ReadOnlyRoot,
		CapDrop:        []string{"ALL"},
		CapAdd:         c.capabilities(user),
		SecurityOpt:    slices.Clone(c.SecurityOpt),
		Runtime:        c.Runtime,
		ShmSize:        c.ShmSize,
		Resources: container.Resources{
			Memory: c.Memory, MemorySwap: c.Memory, // swap included
			NanoCPUs:  int64(c.CPUs * 1e9),
			PidsLimit: &pids,
		},
	}
	if slices.Equal(host.CapAdd, []string{"ALL"}) {
		host.CapDrop = c.CapDrop
	}
	if !c.AllowNewPrivileges {
		host.SecurityOpt = append(host.SecurityOpt, "no-new-privileges")
	}
	for _, s := range c.DNS {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return fmt.Errorf("Config.DNS: %w", err)
		}
		host.DNS = append(host.DNS, a)
	}
	if c.GPUs != 0 {
		host.DeviceRequests = []container.DeviceRequest{{Count: c.GPUs, Capabilities: [][]string{{"gpu"}}}}
	}
	main(config, host)
	options := client.ContainerCreateOptions{Config: config, HostConfig: host, Name: h.name}
	if c.Platform != "" {
		if options.Platform, err = parsePlatform(c.Platform); err != nil {
			return err
		}
	}
	created, err := h.engine.ContainerCreate(ctx, options)
	if err != nil {
		return h.explainCreate(err)
	}
	h.id = created.ID
	for _, warning := range created.Warnings {
		c.Logger.Warn("the engine warns about the container", "container", h.name, "warning", warning)
	}
	return nil
}

// environ is Config.Env as a list.
func (c Config) environ() []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, name+"="+c.Env[name])
	}
	return env
}

// labels say whose the container is: sandshell is the version, sandshell.box the box, sandshell.host and
// sandshell.pid the process that made it. None of them is secret.
func (h *containerHandle) labels(more map[string]string) map[string]string {
	labels := map[string]string{}
	for k, v := range more {
		if k != "sandshell" && !strings.HasPrefix(k, "sandshell.") {
			labels[k] = v
		}
	}
	labels["sandshell"] = version()
	labels["sandshell.box"] = h.box
	labels["sandshell.server"] = string(h.server)
	if h.server == Boxd {
		labels["sandshell.linger"] = h.linger.String()
	}
	if h.keep {
		labels["sandshell.keep"] = "true"
	}
	labels["sandshell.pid"] = strconv.Itoa(os.Getpid())
	if name, err := os.Hostname(); err == nil {
		labels["sandshell.host"] = name
	}
	return labels
}

// version is this module's version.
func version() string {
	const module = "github.com/sandshell/sandshell"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Path == module && info.Main.Version != "" {
			return info.Main.Version
		}
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version
			}
		}
	}
	return "(devel)"
}

// newContainer names a container that is to be.
func newContainer(e *engine, c Config) *containerHandle {
	h := &containerHandle{engine: e, image: c.Image, name: c.Name, box: strings.ToLower(rand.Text()[:16]), memory: c.Memory,
		keep: c.Keep, server: c.Server, linger: c.Linger}
	if h.name == "" {
		h.name = "sandshell-" + h.box
	}
	return h
}

// explainCreate says what an engine's refusal to create the container means.
func (h *containerHandle) explainCreate(err error) error {
	text := err.Error()
	switch {
	case errdefs.IsConflict(err) && strings.Contains(text, h.name):
		return fmt.Errorf("create container: the name %q is taken: give another Config.Name, or remove the other container (docker rm -f %s): %w",
			h.name, h.name, err)
	case strings.Contains(text, "bind source path does not exist"):
		_, source, _ := strings.Cut(text, "bind source path does not exist: ")
		return fmt.Errorf("create container: %w", &fs.PathError{Op: "mount", Path: source, Err: missingSource{err}})
	case client.IsErrConnectionFailed(err):
		return h.engine.unreachable(err)
	}
	return fmt.Errorf("create container: %w", err)
}

// missingSource is the engine's word that a path is not there, on the engine's machine.
type missingSource struct{ err error }

func (e missingSource) Error() string {
	return "it does not exist on the engine's machine; make it, or correct Config.Mounts"
}
func (e missingSource) Is(target error) bool { return target == fs.ErrNotExist }
func (e missingSource) Unwrap() error        { return e.err }

// start starts the container.
func (h *containerHandle) start(ctx context.Context) error {
	_, err := h.engine.ContainerStart(ctx, h.id, client.ContainerStartOptions{})
	if err == nil {
		return nil
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "/bin/sh") && (strings.Contains(text, "no such file") || strings.Contains(text, "not found")):
		return fmt.Errorf("start container: image %q has no /bin/sh: Config.Server OpenSSH needs a POSIX shell and OpenSSH's sshd; Boxd, the default, does not: %w", h.image, err)
	case strings.Contains(text, "unable to find user"), strings.Contains(text, "unable to find group"), strings.Contains(text, "no matching entries in"):
		return fmt.Errorf("start container: image %q has no entry of that name in its /etc/passwd or /etc/group: set Config.User to "+
			"a name that is there, or to numbers, \"uid\" or \"uid:gid\", which need none: %w", h.image, err)
	case strings.Contains(text, "network") && strings.Contains(text, "not found"):
		return fmt.Errorf("start container: there is no such network; docker network ls shows those there are, docker network create makes one: %w", err)
	}
	return fmt.Errorf("start container: %w", err)
}

// removeLimit bounds a removal. An engine under load takes seconds.
const removeLimit = 30 * time.Second

// remove removes the container, with what runs in it and its anonymous volumes, and waits until it is gone. There
// being none is success. It has time of its own: it is called when ctx has ended, too.
func (h *containerHandle) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	id := h.id
	if id == "" { // the answer to its creation was lost, or there was none: it is ours if it says so
		inspected, err := h.engine.ContainerInspect(ctx, h.name, client.ContainerInspectOptions{})
		if err != nil || inspected.Container.Config == nil || inspected.Container.Config.Labels["sandshell.box"] != h.box {
			return nil
		}
		id = inspected.Container.ID
	}
	_, err := h.engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	for err != nil && !errdefs.IsNotFound(err) {
		if !errdefs.IsConflict(err) { // "removal … is already in progress"
			return fmt.Errorf("remove container %s: %w", h.name, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove container %s: %w", h.name, errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
		if _, err = h.engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{}); err == nil {
			_, err = h.engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		}
	}
	return nil
}

// end finds out how a container ended that has. One that the engine has removed by then left its last words among the engine's events.
func (h *containerHandle) end(ctx context.Context, box string) error {
	lost := func(format string, args ...any) error {
		return &sandbox.LostError{Box: box, Reason: fmt.Sprintf(format, args...)}
	}
	var code int
	oom, died, destroyed := false, false, false
	inspected, err := h.engine.ContainerInspect(ctx, h.id, client.ContainerInspectOptions{})
	if state := inspected.Container.State; err == nil && state != nil {
		died, code, oom = !state.Running, state.ExitCode, state.OOMKilled
	} else {
		events := h.engine.Events(ctx, client.EventsListOptions{
			Since: strconv.FormatInt(time.Now().Add(-10*time.Minute).Unix(), 10), Until: strconv.FormatInt(time.Now().Unix()+1, 10),
			Filters: client.Filters{}.Add("container", h.id).Add("type", "container"),
		})
		for more := true; more; {
			select {
			case m := <-events.Messages:
				switch m.Action {
				case "oom":
					oom = true
				case "die":
					died = true
					code, _ = strconv.Atoi(m.Actor.Attributes["exitCode"])
				case "destroy":
					destroyed = true
				}
				more = !destroyed
			case <-events.Err:
				more = false
			}
		}
	}
	switch {
	case oom && code == 137:
		limit := "the machine's memory"
		if h.memory > 0 {
			limit = fmt.Sprintf("its %d MiB", h.memory>>20)
		}
		return lost("out of memory: the container used up %s and was killed", limit)
	case died && code == 137:
		return lost("the container was killed or removed")
	case died:
		return lost("the container ended with status %d", code)
	}
	return lost("the container was removed")
}
