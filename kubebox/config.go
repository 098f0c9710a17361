package kubebox

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/plugin"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// A Config says which pod to make, and where. The zero value is usable where kubectl is.
type Config struct {
	Cluster // which cluster and namespace, and the Logger

	// Image is the image's name: any Linux image for amd64 or arm64 that has the shell that
	// sessions are to run. Its environment and working directory are kept; its entrypoint and
	// command do not run. Unless there is a BoxdImage it also has sh, head, sha256sum, uname,
	// sleep, chmod and mv, as all but the barest have. Default: DefaultImage.
	Image string
	// BoxdImage is an image that has this version's boxd as /boxd, and need have nothing else:
	// WriteBoxd writes it. A container of it puts boxd into the pod before the pod's own starts,
	// which can then only read it. Default: boxd is brought by exec.
	BoxdImage string
	// Keep lets the box outlive its program: see Cluster.Attach and Detach. Default: the box ends
	// by itself after its program has.
	Keep bool
	// Linger is how long a box goes on after its program was killed or cut off, and how long the
	// program tries to connect again. A box that is kept goes on for ever. Default: 30 s.
	Linger time.Duration
	// Deadline is how long the pod may live: then the cluster ends it, even if it is in use
	// (activeDeadlineSeconds). Default: no limit.
	Deadline time.Duration
	// Pull says when the image is pulled. Default: when the node does not have it.
	Pull PullPolicy
	// PullSecrets are the names of secrets with registries' credentials.
	PullSecrets []string
	// Progress is called with the cluster's events while the pod is scheduled, its image pulled and
	// its container started, one call at a time; it must not block. If it panics, New returns an
	// error. It needs the right to watch events. Default: none.
	Progress func(Progress)

	// User is the user that everything runs as, "uid" or "uid:gid" in numbers, or "root". A name is
	// not possible, because the cluster cannot look it up in the image. Namespaces of the
	// restricted Pod Security Standard do not admit root; those of the baseline standard do.
	// Default: "1000:1000", whatever the image says.
	User string
	// Dir is the directory in which sessions, jobs and Runs start. It has to exist. Default: the
	// image's working directory.
	Dir string
	// Env is added to the image's environment, "NAME=value". The last entry of a name counts. Every
	// account that may read the pod can read Env.
	Env []string
	// Shell is the program that sessions run, with its arguments. Default: bash, and sh where there
	// is no bash.
	Shell []string
	// Plugins are set up in the box before New returns, as InitPlugins does.
	Plugins []plugin.Plugin

	// Mounts are directories that the pod has in addition to its image.
	Mounts []Mount
	// ReadOnlyRoot makes the image read-only. /tmp is then writable all the same, unless Mounts has
	// something else there.
	ReadOnlyRoot bool

	// Network is NetworkNone, or NetworkCluster for whatever the cluster lets pods do. Default:
	// NetworkNone.
	Network Network

	// Memory is how much the pod's processes may use, in bytes: request and limit. Default: what
	// the namespace says (LimitRange), else no limit. When it is used up the kernel kills one of
	// the box's programs, and the box goes on; but on nodes with control groups of version 2,
	// unless their kubelets are configured with singleProcessOOMKill, it ends the whole pod
	// (memory.oom.group), and the box is lost, with sandbox.LostMemory.
	Memory int64
	// CPUs is how much processor time it may use, in processors, 1.5 is one and a half: request and
	// limit. Default: as for Memory.
	CPUs float64
	// EphemeralStorage is how much it may write into its image, its log and its EmptyDirs, in
	// bytes: request and limit. One that writes more is evicted. Default: as for Memory.
	EphemeralStorage int64

	// CapAdd are capabilities that root in the pod has beside the default ones: CHOWN,
	// DAC_OVERRIDE, FOWNER, FSETID, SETUID, SETGID, KILL, with which apt-get works. A user other
	// than root has none, nor any of CapAdd. The restricted Pod Security Standard allows none but
	// NET_BIND_SERVICE.
	CapAdd []string
	// CapDrop are capabilities that it does not have. "ALL" leaves what is in CapAdd.
	CapDrop []string
	// AllowNewPrivileges lets programs gain privileges by set-user-id bits and file capabilities.
	// sudo and su need it. Default: they do not.
	AllowNewPrivileges bool
	// Runtime is the RuntimeClass to use, as "gvisor". Default: the cluster's default.
	Runtime string

	// ServiceAccount is the pod's account, whose token it gets. Default: none that it could use: no
	// token is in the pod.
	ServiceAccount string
	// NodeSelector are labels that the pod's node has to have.
	NodeSelector map[string]string
	// Tolerations let the pod run on nodes whose taints keep other pods away.
	Tolerations []Toleration

	// Name is the pod's name. Default: "sandshell-" and a random text.
	Name string
	// Labels and Annotations are added to the pod's. Names that begin with "sandshell" are
	// reserved: see New.
	Labels, Annotations map[string]string

	// StartTimeout bounds the time from the pod's creation to the login: waiting for a node and
	// pulling the image count. Default: 2 min.
	StartTimeout time.Duration
	// Grace is how long a command that is being killed may take to end after ^C, and again after
	// SIGTERM.
	// Default: 1 s.
	Grace time.Duration
	// StartLimit is how long a shell may take until its first prompt. Default: 30 s.
	StartLimit time.Duration

	pool string // the pool that it is for
}

// A Toleration lets a pod run on nodes with a taint. Its fields have the meaning and the words of
// Kubernetes' own.
type Toleration struct {
	Key      string // the taint's key; "" with Operator "Exists": every taint
	Operator string // "Equal" or "Exists"; "" is "Equal"
	Value    string // the taint's value, for "Equal"
	Effect   string // "NoSchedule", "PreferNoSchedule" or "NoExecute"; "": all of them
	// For is how long the pod stays on a node that gets a taint of effect NoExecute, in whole
	// seconds. nil: for ever; 0 or less: it is evicted at once.
	For *time.Duration
}

// DefaultImage is the image of a Config that names none.
const DefaultImage = "debian:stable-slim"

// A PullPolicy says when an image is pulled.
type PullPolicy string

const (
	// PullMissing pulls an image that the node does not have.
	PullMissing PullPolicy = ""
	// PullAlways pulls each time: the registry may have a newer image of the same name.
	PullAlways PullPolicy = "always"
	// PullNever never pulls. An image that the node does not have is an error.
	PullNever PullPolicy = "never"
)

// A Network says what the pod may reach, and who may reach it.
type Network string

const (
	// NetworkNone lets the pod reach nothing, and nothing reach the pod, by a NetworkPolicy of the
	// namespace. CheckNetwork finds out whether the cluster enforces it.
	NetworkNone Network = "none"
	// NetworkCluster is whatever the cluster lets pods do.
	NetworkCluster Network = "cluster"
)

// Progress is an event of the cluster's about a pod that is to start.
type Progress struct {
	Pod     string
	Status  string // "Scheduled", "Pulling", "Pulled", "Created", "Started", "FailedScheduling", …
	Message string // "Successfully assigned …"
}

const defaultLinger = 30 * time.Second

// withDefaults fills in what the zero values mean.
func (c Config) withDefaults() (Config, error) {
	if c.Image == "" {
		c.Image = DefaultImage
	}
	if c.Linger == 0 {
		c.Linger = defaultLinger
	}
	if c.Linger < time.Second {
		return c, fmt.Errorf("Config.Linger is %v: it has to be a second or more", c.Linger)
	}
	if c.Deadline < 0 || c.Deadline > 0 && c.Deadline < time.Second {
		return c, fmt.Errorf("Config.Deadline is %v: it has to be a second or more", c.Deadline)
	}
	switch c.Pull {
	case PullMissing, PullAlways, PullNever:
	default:
		return c, fmt.Errorf("Config.Pull is %q: it can be PullMissing, PullAlways or PullNever",
			c.Pull)
	}
	switch c.Network {
	case "":
		c.Network = NetworkNone
	case NetworkNone, NetworkCluster:
	default:
		return c, fmt.Errorf("Config.Network is %q: it can be NetworkNone or NetworkCluster",
			c.Network)
	}
	if err := plugin.Check(c.Plugins...); err != nil {
		return c, fmt.Errorf("Config.Plugins: %w", err)
	}
	if c.Dir != "" && c.Dir[0] != '/' {
		return c, fmt.Errorf("Config.Dir is %q: it has to be absolute", c.Dir)
	}
	if err := environ.Check(c.Env); err != nil {
		return c, fmt.Errorf("Config.Env: %w", err)
	}
	if c.Name != "" {
		if wrong := content.IsDNS1123Subdomain(c.Name); len(wrong) > 0 {
			return c, fmt.Errorf("Config.Name is %q: %s", c.Name, strings.Join(wrong, "; "))
		}
	}
	for _, m := range []map[string]string{c.Labels, c.Annotations} {
		for name := range m {
			if kube.Ours(name) {
				return c, fmt.Errorf("Config.Labels or Annotations has %q: names that begin with "+
					"sandshell are taken", name)
			}
		}
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = 2 * time.Minute
	}
	c.Logger = c.log()
	return c, c.checkMounts()
}

// A Mount is a directory that a pod has from elsewhere.
type Mount struct {
	Type MountType // default: EmptyDir
	// Source is the name of a PersistentVolumeClaim, a Secret or a ConfigMap of the namespace,
	// which has to be there. An EmptyDir has none.
	Source string
	// Target is the absolute path in the pod.
	Target   string
	ReadOnly bool // Secrets and ConfigMaps always are
	// Size limits an EmptyDir or a Memory, in bytes. Default: none but the pod's.
	Size int64
}

// A MountType is a kind of mount.
type MountType string

const (
	EmptyDir  MountType = "emptyDir"              // the node's disk, for as long as the pod
	Memory    MountType = "memory"                // the pod's memory
	Claim     MountType = "persistentVolumeClaim" // storage that stays
	Secret    MountType = "secret"                // a file for each of its keys
	ConfigMap MountType = "configMap"             // the same
)

func (c Config) checkMounts() error {
	taken := map[string]bool{}
	for _, m := range c.Mounts {
		fail := func(why string) error {
			return fmt.Errorf("mount %q at %q: %s", m.Source, m.Target, why)
		}
		target := path.Clean(m.Target)
		switch {
		case !path.IsAbs(m.Target) || target == "/":
			return fail("the target has to be an absolute path, and not /")
		case target == wire.Dir || strings.HasPrefix(target, wire.Dir+"/"):
			return fail(wire.Dir + " is the sandbox's own")
		case taken[target]:
			return fail("there are two mounts with that target")
		}
		taken[target] = true
		switch m.Type {
		case "", EmptyDir, Memory:
			if m.Source != "" {
				return fail("an EmptyDir and a Memory have no source")
			}
		case Claim, Secret, ConfigMap:
			if m.Source == "" {
				return fail("it needs the name of its source")
			}
			if m.Size != 0 {
				return fail("its size is what its source has")
			}
		default:
			return fail(fmt.Sprintf("its type is %q: it can be EmptyDir, Memory, Claim, Secret "+
				"or ConfigMap", m.Type))
		}
	}
	return nil
}
