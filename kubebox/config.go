package kubebox

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/plugin"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// A Config says which pod to make, and where. The zero value is usable where kubectl is.
type Config struct {
	Cluster // the cluster, the namespace and the Logger

	// Image is the image's name: any Linux image for amd64 or arm64 that has the shell that
	// sessions are to run. Its environment and working directory are kept; its entrypoint and
	// command do not run. If BoxdImage is empty, the image also needs sh, head, sha256sum, uname,
	// sleep, chmod and mv. Default: DefaultImage.
	Image string
	// Snapshot is the ID of a Snapshot: New makes the pod of the image that the snapshot's box had,
	// or of Image if that is set, and gives it the files and sessions of the snapshot. User should
	// be the one that the box had.
	Snapshot string
	// BoxdImage is an image that has this version's boxd as /boxd, which WriteBoxd writes. It needs
	// nothing else. An init container of that image copies boxd into the pod; the box itself can
	// read boxd, but not replace it. Default: New copies boxd into the pod by exec.
	BoxdImage string
	// Keep lets the box outlive its program: see Cluster.Attach and Detach. Default: the box ends
	// by itself after its program has.
	Keep bool
	// Linger is how long a box goes on after its program was killed or cut off, and how long the
	// program tries to connect again. It is at least a second. A box with Keep goes on for ever.
	// Default: 30 s.
	Linger time.Duration
	// Deadline is how long the pod may live (activeDeadlineSeconds). After that the cluster ends
	// it, even if it is in use. Default: no limit.
	Deadline time.Duration
	// Pull says when the image is pulled. Default: PullMissing.
	Pull PullPolicy
	// PullSecrets are the names of the namespace's secrets that hold credentials of registries.
	// Default: none.
	PullSecrets []string
	// Progress is called with the cluster's events while the pod is scheduled, its image pulled and
	// its container started. Calls are made one at a time and must not block. If one panics, New
	// returns an error. Without the right to watch events, Progress is never called. Default: none.
	Progress func(Progress)

	// User is the user that everything runs as: "uid" or "uid:gid" in numbers, or "root".
	// Kubernetes cannot look up other names in the image. Namespaces of the restricted Pod Security
	// Standard do not admit root; those of the baseline standard do. Default: "1000:1000". The
	// image's own user is not used, because it is root in most images.
	User string
	// Dir is the directory in which sessions, jobs and Runs start. It must exist. Default: the
	// image's working directory.
	Dir string
	// Env is added to the image's environment, "NAME=value". If a name occurs twice, the last entry
	// counts. Every account that may read the pod can read Env.
	Env []string
	// Shell is the program that sessions run, with its arguments. Default: bash, or sh if there is
	// no bash.
	Shell []string
	// Plugins are set up in the box before New returns, as InitPlugins does.
	Plugins []plugin.Plugin

	// Mounts are directories that the pod has in addition to its image.
	Mounts []Mount
	// ReadOnlyRoot makes the image read-only. /tmp is then a Volume of the pod's own, unless Mounts
	// has something else there.
	ReadOnlyRoot bool

	// Network is the network to be on: NetworkNone ("none") for none at all (everything works, Dial
	// too), or NetworkCluster ("cluster") for whatever the cluster lets pods do. Default:
	// NetworkNone. A container's default differs: it has only its engine's bridge, while a pod
	// would reach other people's pods.
	Network string
	// Outward brings what programs of the box connect to outside to package egress, once its Attach
	// has been called. It needs neither proxy variables nor the programs' help: boxd looks at their
	// connects (seccomp), and is the box's name server. Until Attach, and after the Exit is closed,
	// connects to the outside are refused. Network must be NetworkNone, which is what keeps
	// programs from going around, if the cluster enforces it; AllowNewPrivileges must be false. The
	// nodes need Linux 5.5, better 5.19, and no gVisor. See package egress. Default: programs reach
	// what proxy variables lead them to.
	Outward bool

	// Memory is how much memory the pod may use, in bytes: it is both request and limit. Default:
	// what the namespace's LimitRange says, or no limit. When it is used up, the kernel kills one
	// of the box's programs, and the box goes on. On nodes with control groups of version 2, the
	// kernel ends the whole pod (memory.oom.group), unless the kubelet is configured with
	// singleProcessOOMKill. The box is then lost, with sandbox.LostMemory.
	Memory int64
	// CPUs is how much processor time the pod may use, in processors: 1.5 is one and a half. It is
	// both request and limit. Default: as for Memory.
	CPUs float64
	// EphemeralStorage is how much the pod may write into its image, its log and its own Volumes,
	// in bytes: it is both request and limit. A pod that writes more is evicted. Default: as for
	// Memory.
	EphemeralStorage int64

	// CapAdd are capabilities that root in the pod has in addition to the default ones: CHOWN,
	// DAC_OVERRIDE, FOWNER, FSETID, SETUID, SETGID, KILL, with which apt-get works. A user other
	// than root has no capabilities, not even those in CapAdd. The restricted Pod Security Standard
	// allows only NET_BIND_SERVICE.
	CapAdd []string
	// CapDrop are capabilities that root in the pod does not have. "ALL" leaves those in CapAdd.
	CapDrop []string
	// AllowNewPrivileges lets programs gain privileges by set-user-id bits and file capabilities.
	// sudo and su need it. Default: they do not.
	AllowNewPrivileges bool
	// Runtime is the RuntimeClass to use, such as "gvisor". Default: the cluster's default.
	Runtime string

	// ServiceAccount is the pod's account, whose token is in the pod. Default: the namespace's
	// default account, without a token.
	ServiceAccount string
	// NodeSelector are labels that the pod's node must have.
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
	// SIGTERM. Default: 1 s.
	Grace time.Duration
	// StartLimit is how long a shell may take until its first prompt. Default: 30 s.
	StartLimit time.Duration

	pool string // the name of the pool that the box is for; "" if it is for none
}

// A Toleration lets a pod run on nodes with a taint. Its fields mean what they mean in Kubernetes.
type Toleration struct {
	Key      string // the taint's key; "" means every taint, if Operator is "Exists"
	Operator string // "Equal" or "Exists"; "" means "Equal"
	Value    string // the taint's value, for "Equal"
	Effect   string // "NoSchedule", "PreferNoSchedule" or "NoExecute"; "" means all of them
	// For is how long the pod stays on a node that gets a taint of effect NoExecute, in whole
	// seconds. nil means for ever. With 0 or less the pod is evicted at once.
	For *time.Duration
}

// DefaultImage is the image of a Config that names none.
const DefaultImage = "debian:stable-slim"

// A PullPolicy says when an image is pulled.
type PullPolicy string

const (
	// PullMissing pulls an image that the node does not have.
	PullMissing PullPolicy = ""
	// PullAlways pulls each time, because the registry may have a newer image of the same name.
	PullAlways PullPolicy = "always"
	// PullNever never pulls. An image that the node does not have is an error.
	PullNever PullPolicy = "never"
)

// Values of Config.Network.
const (
	// NetworkNone is a NetworkPolicy of the namespace by which the pod reaches nothing and nothing
	// reaches the pod. CheckNetwork finds out whether the cluster enforces it.
	NetworkNone = "none"
	// NetworkCluster is whatever the cluster lets pods do.
	NetworkCluster = "cluster"
)

// Progress is an event of the cluster about a pod that is starting.
type Progress struct {
	Pod     string
	Status  string // "Scheduled", "Pulling", "Pulled", "Created", "Started", "FailedScheduling", …
	Message string // "Successfully assigned …"
}

const defaultLinger = 30 * time.Second

// withDefaults fills in what the zero values mean.
func (c Config) withDefaults() (Config, error) {
	if c.Image == "" && c.Snapshot != "" {
		s, err := readSnapshot(c.Snapshot)
		if err != nil {
			return c, fmt.Errorf("Config.Snapshot: %w", err)
		}
		c.Image = s.Image
	}
	if c.Image == "" {
		c.Image = DefaultImage
	}
	if err := remotebox.CheckImage("Config.Image", c.Image); err != nil {
		return c, err
	}
	if err := remotebox.CheckShell("Config.Shell", c.Shell); err != nil {
		return c, err
	}
	if c.Linger == 0 {
		c.Linger = defaultLinger
	}
	if c.Linger < time.Second {
		return c, fmt.Errorf("Config.Linger: %v is too short: give a second or more", c.Linger)
	}
	if c.Deadline < 0 || c.Deadline > 0 && c.Deadline < time.Second {
		return c, fmt.Errorf("Config.Deadline: %v is too short: give a second or more", c.Deadline)
	}
	switch c.Pull {
	case PullMissing, PullAlways, PullNever:
	default:
		return c, fmt.Errorf("Config.Pull: %q is no policy: give PullMissing, PullAlways or "+
			"PullNever", c.Pull)
	}
	switch c.Network {
	case "":
		c.Network = NetworkNone
	case NetworkNone, NetworkCluster:
	default:
		return c, fmt.Errorf("Config.Network: pods have no network %q: give NetworkNone or "+
			"NetworkCluster", c.Network)
	}
	switch {
	case c.Outward && c.Network != NetworkNone:
		return c, fmt.Errorf("Config.Outward: on the network %q programs can go around: set "+
			"Config.Network to NetworkNone", c.Network)
	case c.Outward && c.AllowNewPrivileges:
		return c, errors.New("Config.Outward: the kernel gives such programs no new privileges: " +
			"leave out Config.AllowNewPrivileges or Config.Outward")
	}
	if err := plugin.Check(c.Plugins...); err != nil {
		return c, fmt.Errorf("Config.Plugins: %w", err)
	}
	if c.Dir != "" && c.Dir[0] != '/' {
		return c, fmt.Errorf("Config.Dir: %q is relative: give an absolute path", c.Dir)
	}
	if err := environ.Check("Config.Env", c.Env); err != nil {
		return c, err
	}
	if c.Name != "" {
		if wrong := content.IsDNS1123Subdomain(c.Name); len(wrong) > 0 {
			return c, fmt.Errorf("Config.Name: %q is no pod's name: %s", c.Name,
				strings.Join(wrong, "; "))
		}
	}
	for field, m := range map[string]map[string]string{"Config.Labels": c.Labels,
		"Config.Annotations": c.Annotations} {
		for name := range m {
			if remotebox.IsOwnLabel(name) {
				return c, fmt.Errorf("%s: %q is reserved: give a name that does not begin with "+
					"\"sandshell\"", field, name)
			}
		}
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = 2 * time.Minute
	}
	c.Logger = c.log()
	if _, _, err := c.user(); err != nil {
		return c, err
	}
	return c, c.checkMounts()
}
