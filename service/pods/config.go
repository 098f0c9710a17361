package pods

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
)

// config returns the Config of the pod for a Request: the Place's base, changed by the Request's
// own Config. If the Request asks for something that pods do not have, the error is a
// *service.InvalidError.
func (p *Place) config(r place.Request) (kubebox.Config, error) {
	c, of := p.base, r.Config
	if err := refuse(r); err != nil {
		return c, err
	}
	if err := checkEnd(r.PauseAtEnd); err != nil {
		return c, err
	}
	set(&c.Image, of.Image)
	set(&c.Linger, of.Linger)
	set(&c.Pull, kubebox.PullPolicy(of.Pull))
	set(&c.User, of.User)
	set(&c.Dir, of.Dir)
	set(&c.Memory, of.Memory)
	set(&c.CPUs, of.CPUs)
	set(&c.Runtime, of.Runtime)
	set(&c.StartTimeout, of.StartTimeout)
	set(&c.Grace, of.Grace)
	set(&c.StartLimit, of.StartLimit)
	set(&c.Network, of.Network)
	if len(of.Shell) > 0 {
		c.Shell = of.Shell
	}
	if of.Logger != nil {
		c.Logger = of.Logger
	}
	c.Outward = c.Outward || of.Outward
	c.ReadOnlyRoot = c.ReadOnlyRoot || of.ReadOnlyRoot
	c.AllowNewPrivileges = c.AllowNewPrivileges || of.AllowNewPrivileges
	c.Env = slices.Concat(c.Env, of.Env)
	c.Plugins = slices.Concat(c.Plugins, of.Plugins)
	c.CapAdd, c.CapDrop = slices.Concat(c.CapAdd, of.CapAdd), slices.Concat(c.CapDrop, of.CapDrop)
	c.Labels = clone(c.Labels)
	maps.Copy(c.Labels, of.Labels)
	c.Mounts = slices.Clone(c.Mounts)
	for _, m := range of.Mounts {
		c.Mounts = append(c.Mounts, kubebox.Mount{Type: kubebox.Tmpfs, Target: m.Target,
			ReadOnly: m.ReadOnly, Size: m.Size})
	}
	return c, nil
}

// set sets a field to value, unless value is zero.
func set[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}

// refuse returns an error that names the first field of a Request that pods do not have.
func refuse(request place.Request) error {
	c, pausedBy := request.Config, request.PausedBy
	elsewhere := "a Spec's is for a Docker engine: give it in the Config of pods.New"
	for _, r := range []struct {
		asked       bool
		field, text string
	}{
		{c.Snapshot != "", "Config.Snapshot", "a Spec's is on a Docker engine: name an image, or " +
			"give a snapshot of a pod in the Config of pods.New"},
		{c.Entrypoint, "Config.Entrypoint", "a pod runs nothing beside the box"},
		{c.Progress != nil, "Config.Progress", elsewhere},
		{c.RegistryAuth != "", "Config.RegistryAuth", "give the names of secrets with " +
			"credentials in the PullSecrets of the Config of pods.New"},
		{c.Platform != "", "Config.Platform", "give a NodeSelector in the Config of pods.New, as " +
			"kubernetes.io/arch"},
		{c.PluginNetwork != "", "Config.PluginNetwork", "plugins are set up in the pod itself"},
		{c.PackageCache != "", "Config.PackageCache", "plugins are set up in the pod itself, " +
			"without a cache"},
		{!slices.Contains([]string{"", "none"}, c.Network), "Config.Network",
			`give "none", or leave it empty for that of the Config of pods.New`},
		{len(c.Publish) > 0, "Config.Publish", "a pod has an address of its own, and Dial " +
			"reaches what listens in it"},
		{len(c.ExtraHosts) > 0, "Config.ExtraHosts", "pods do not have it"},
		{len(c.DNS) > 0, "Config.DNS", "pods have the cluster's"},
		{c.Hostname != "", "Config.Hostname", "a pod's is its name"},
		{c.PIDs != 0, "Config.PIDs", "the cluster limits it for all pods of a node alike " +
			"(podPidsLimit of the kubelet)"},
		{c.ShmSize != 0, "Config.ShmSize", "mount a Tmpfs of that size at /dev/shm"},
		{c.GPUs != 0, "Config.GPUs", "package kubebox does not support them"},
		{len(c.SecurityOpt) > 0, "Config.SecurityOpt", "a pod has the runtime's seccomp profile"},
		{slices.ContainsFunc(c.Mounts, func(m sshbox.Mount) bool {
			return m.Type != sshbox.Tmpfs
		}), "Config.Mounts",
			"a Spec can have Tmpfs mounts; give volumes, secrets and config maps in the Config " +
				"of pods.New"},
		{request.Egress, "Egress", "a pod always has routes to the cluster, so programs could go " +
			"around the rules; let a network policy say what pods reach"},
		{pausedBy == "Idle", "Lifecycle.Idle", "pods cannot be paused; Deadline of the Config of " +
			"pods.New ends them"},
		{pausedBy == "Session", "Lifecycle.Session", "pods cannot be paused; Deadline of the " +
			"Config of pods.New ends them"},
		{pausedBy == "MaxRunning", "Lifecycle.MaxRunning", "pods cannot be paused; MaxPerOwner " +
			"and the namespace's ResourceQuota limit their number"},
	} {
		if r.asked {
			return &service.InvalidError{Field: "Spec." + r.field,
				Reason: fmt.Sprintf("spec %q asks for it, and boxes on pods do not have it: %s",
					request.Spec, r.text)}
		}
	}
	return nil
}
