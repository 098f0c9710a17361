package sshbox

import (
	"log/slog"
	"time"

	"github.com/moby/moby/api/types/mount"
	"github.com/sandshell/sandshell/plugin"
)

// A Config says which container to make. The zero value is usable. The tags "spec" are the keys of
// fields in files, such as those of service.DirSpecs.
type Config struct {
	// Image is the image's name ("name", "name:tag" or "name@digest") or its id. It can be any
	// Linux image for amd64 or arm64 that has the shell of the sessions. The box has the image's
	// environment, user and working directory. Default: DefaultImage.
	Image string `spec:"image"`
	// Snapshot is the id of a Snapshot, which takes the place of Image: the box has its files, and
	// its sessions under their ids, the main one too. The other fields are not part of a snapshot,
	// so they are given again. A variable of Env that the snapshot's box did not have, or had with
	// another value, is new in the sessions too; else they keep their own. Of a snapshot with
	// KeptAll, the box has Runtime, Shell and Dir as well. Default: none.
	Snapshot string
	// Entrypoint runs the image's entrypoint and command beside the sandbox. They print to the
	// container's log, and their end does not end the box. Default: they do not run.
	Entrypoint bool `spec:"entrypoint"`
	// Keep lets the box outlive its program: see Engine.Attach and Detach. Default: the box ends
	// after its program has ended.
	Keep bool
	// Linger is how long the box goes on after its program was killed or cut off, and how long the
	// program tries to connect again. It is at least a second. A box with Keep goes on for ever.
	// Default: 30 s.
	Linger time.Duration `spec:"linger"`
	// Pull says when the image is pulled. Default: PullMissing.
	Pull PullPolicy `spec:"pull"`
	// Progress is called while the image is pulled, or made with Plugins, one call at a time. It
	// must not block. If it panics, the call that makes the box or the image returns an error. If
	// Progress is nil, nothing is reported.
	Progress func(PullProgress)
	// RegistryAuth is the login at the registry, as in the header X-Registry-Auth of the engine's
	// API (authconfig.Encode of github.com/moby/moby/api makes it). Default: no login.
	RegistryAuth string
	// Platform is "os/arch" or "os/arch/variant". Default: the engine's own.
	Platform string `spec:"platform"`

	// User is the name or the id of the user that everything runs as, or "user:group". A name must
	// be in the image's /etc/passwd; an id need not be. Default: the image's user, or root if the
	// image has none.
	User string `spec:"user"`
	// Dir is the absolute path of the directory in which sessions, jobs and Runs start. It must
	// exist. Default: the image's working directory, or the user's home if the image has none. If
	// the user may not enter the working directory, the default is "/".
	Dir string `spec:"dir"`
	// Env is added to the image's environment, each "NAME=value". If a name occurs several times,
	// the last entry counts.
	Env []string
	// Shell is the program that sessions run, with its arguments. Default: bash, or sh if there is
	// no bash.
	Shell []string `spec:"shell"`

	// Plugins are in the box from the start. The first New with the same Image, User and Plugins
	// makes a container, sets the plugins up there and keeps the result as an image on the engine.
	// Later boxes start from that image and run no setup. If several programs start such boxes at
	// the same time, one makes the image and the others wait. The container for the setup differs
	// from the box: it has no ReadOnlyRoot, CapDrop and Mounts, only the proxy variables of Env
	// (such as HTTP_PROXY), and PluginNetwork as its network. The images and the PackageCaches stay
	// on the engine until Prune.
	Plugins []plugin.Plugin
	// PluginNetwork is the network on which Plugins are set up, in the form of Network. Default:
	// the value of Network.
	PluginNetwork string
	// PackageCache is the volume that keeps what setups have downloaded with apt-get and pip.
	// Default: one volume for each image, because a program of one image could leave there what
	// another image then installs. Name one volume for several images only if you trust them all.
	PackageCache string `spec:"package_cache"`

	// Mounts are directories and files that the container has in addition to its image.
	Mounts []Mount `spec:"mounts"`
	// ReadOnlyRoot makes the image read-only. /tmp is then a tmpfs, unless Mounts has a mount
	// there.
	ReadOnlyRoot bool `spec:"read_only_root"`

	// Network is the container's network: "none", "host", or one that "docker network ls" shows.
	// With "none" everything works, Dial too. Default: the engine's default, a bridge to the
	// outside.
	Network string `spec:"network"`
	// Outward brings what programs of the box connect to outside to package egress, once its Attach
	// has been called. It needs neither proxy variables nor the programs' help: boxd looks at their
	// connects (seccomp), and is the box's name server. Until Attach, and after the Exit is closed,
	// connects to the outside are refused. Network must be "none", and AllowNewPrivileges false.
	// It needs Linux 5.5, better 5.19, on amd64 or arm64, and does not work in gVisor. See package
	// egress. Default: programs reach what proxy variables lead them to.
	Outward bool `spec:"outward"`
	// Publish are TCP ports of the box that the engine publishes on 127.0.0.1 of its machine, as
	// docker run -p 127.0.0.1::PORT does. The engine chooses a free port for each, which
	// DockerSSHBox.Published returns. Every user of that machine can connect to it. Dial does not
	// need published ports. Network must not be "none" or "host". Default: none.
	Publish []int `spec:"publish"`
	// ExtraHosts are added to /etc/hosts, each "name:address". The address "host-gateway" is the
	// engine's machine.
	ExtraHosts []string `spec:"extra_hosts"`
	// DNS are the IP addresses of name servers. Default: the engine's.
	DNS []string `spec:"dns"`
	// Hostname is the container's own name. Default: the container's short id.
	Hostname string `spec:"hostname"`

	// Memory is how much memory the container may use, swap included, in bytes. The engine's
	// minimum is 6 MiB. An engine that cannot limit it is refused, as for CPUs and PIDs: a rootless
	// one needs cgroup v2 and systemd. Default: no limit.
	Memory int64 `spec:"memory,size"`
	// CPUs is how much processor time the container may use, in processors: 1.5 is one and a half.
	// Default: no limit.
	CPUs float64 `spec:"cpus"`
	// PIDs is how many processes and threads the container may have. If it is negative, there is no
	// limit. Default: 4096, or no limit, with a warning, on an engine that cannot limit them.
	PIDs int64 `spec:"pids"`
	// ShmSize is the size of /dev/shm in bytes. Default: the engine's, 64 MiB.
	ShmSize int64 `spec:"shm_size,size"`
	// GPUs is how many of the machine's GPUs the container gets, -1 for all. Default: none.
	GPUs int `spec:"gpus"`

	// CapAdd are capabilities that root in the container has beside the default ones, which are
	// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETUID, SETGID and KILL; apt-get needs these. "ALL" adds
	// all. A user other than root has no capabilities, not even those in CapAdd.
	CapAdd []string `spec:"cap_add"`
	// CapDrop are capabilities that root in the container does not have. "ALL" drops all but those
	// in CapAdd.
	CapDrop []string `spec:"cap_drop"`
	// AllowNewPrivileges lets programs gain privileges by set-user-id bits and file capabilities.
	// sudo and su need it. Default: they do not.
	AllowNewPrivileges bool `spec:"allow_new_privileges"`
	// SecurityOpt are further options of "docker run --security-opt": a seccomp or AppArmor
	// profile, SELinux labels.
	SecurityOpt []string `spec:"security_opt"`
	// Runtime is the engine's runtime for the container, such as "runsc". Default: the engine's
	// default.
	Runtime string `spec:"runtime"`

	// Name is the container's name. Default: "sandshell-" and a random text.
	Name string
	// Labels are added to the container's labels. "sandshell" and names that begin with
	// "sandshell." are this library's own; entries of those names are ignored.
	Labels map[string]string `spec:"labels"`

	// StartTimeout bounds the time from the container's creation to the login. Pulling the image
	// does not count. Default: 1 min.
	StartTimeout time.Duration `spec:"start_timeout"`

	// Docker is the engine to use, a *client.Client of github.com/moby/moby/client. The caller
	// closes it. Default: the engine that the docker command would use. DOCKER_HOST, DOCKER_CONTEXT
	// or "docker context use" name that, also by an ssh:// address; else it is this machine's.
	Docker DockerClient
	// Grace is how long a command that is being killed may take to end after ^C, and again after
	// SIGTERM. Default: 1 s.
	Grace time.Duration
	// StartLimit is how long a shell may take until its first prompt. Default: 30 s.
	StartLimit time.Duration
	// Logger gets events that are in no result, and at debug level each command: see
	// shellbox.Options. If Logger is nil, nothing is logged.
	Logger *slog.Logger

	own []mount.Mount // this library's own mounts
}

// DefaultImage is the image of a Config that names none.
const DefaultImage = "debian:stable-slim"

// A PullPolicy says when an image is pulled.
type PullPolicy string

const (
	// PullMissing pulls an image that the engine does not have.
	PullMissing PullPolicy = ""
	// PullAlways pulls each time, because the registry may have a newer image of the same name.
	PullAlways PullPolicy = "always"
	// PullNever never pulls. If the engine does not have the image, New returns an error.
	PullNever PullPolicy = "never"
)

// PullProgress is how far the pulling or the making of an image has got.
type PullProgress struct {
	Image string
	Layer string // the layer's short id; "" stands for the whole image
	// Status is the engine's ("Downloading", "Extracting", "Pull complete", …) or this package's
	// ("Setting up jupyter").
	Status      string
	Done, Total int64 // bytes; Total is 0 if it is not known
}
