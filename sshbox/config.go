package sshbox

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/moby/moby/api/types/mount"
	"github.com/sandshell/sandshell/internal/environ"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/plugin"
)

// A Config says which container to make. The zero value is usable.
type Config struct {
	// Image is the image's name, "name", "name:tag" or "name@digest", or its id: any Linux image
	// for amd64 or arm64 that has the shell that sessions are to run, static or not. Its
	// environment, user and working directory are kept; its entrypoint and command run only if
	// Entrypoint says so. Default: DefaultImage.
	Image string
	// Entrypoint has the image's own entrypoint and command run beside the sandbox, with the
	// container's log. The box does not end with them. Default: they do not run.
	Entrypoint bool
	// Keep lets the box outlive its program: see Engine.Attach and Detach. Default: the box ends by
	// itself after its program has.
	Keep bool
	// Linger is how long a box goes on after its program was killed or cut off, and how long the
	// program tries to connect again. A box that is kept goes on for ever. Default: 30 s.
	Linger time.Duration
	// Pull says when the image is pulled. Default: when the engine does not have it.
	Pull PullPolicy
	// Progress is called while the image is pulled, or made with Plugins, one call at a time; it
	// must not block. If it panics, the call that makes the box or the image returns an error.
	// Default: none.
	Progress func(PullProgress)
	// RegistryAuth is the login at the registry, as in the header X-Registry-Auth of the engine's
	// API (authconfig.Encode of github.com/moby/moby/api). Default: anonymous.
	RegistryAuth string
	// Platform is "os/arch" or "os/arch/variant". Default: the engine's own.
	Platform string

	// User is the name or the id of the user that everything runs as, or "user:group". A name needs
	// an entry in the image's /etc/passwd; an id does not. Default: the image's user, or root if it
	// has none.
	User string
	// Dir is the directory in which sessions, jobs and Runs start. It has to exist. Default: the
	// image's working directory, or the user's home if the image has none, or "/" if the user may
	// not enter it.
	Dir string
	// Env is added to the image's environment, "NAME=value". The last entry of a name counts.
	Env []string
	// Shell is the program that sessions run, with its arguments. Default: bash, or sh if there is
	// no bash.
	Shell []string

	// Plugins are in the box from the start. The first time, New makes a container of Image, sets
	// them up there and keeps the outcome as an image of the engine's; later boxes with the same
	// Image, User and Plugins start from that and run no setup. Programs that start such boxes at
	// the same time make it once. The container of the setups is like the box, but without
	// ReadOnlyRoot, CapDrop and Mounts, of Env it has only the proxies' variables (HTTP_PROXY and
	// its like), and its network is PluginNetwork. Images and PackageCaches stay on the engine
	// until Prune.
	Plugins []plugin.Plugin
	// PluginNetwork is the network on which Plugins are set up, in the form of Network. Default:
	// the value of Network.
	PluginNetwork string
	// PackageCache is the volume that keeps what setups have downloaded with apt-get and pip.
	// Default: one for each image, since programs of an image could put there what others then
	// install. Name one for several images if you trust them all.
	PackageCache string

	// Mounts are directories and files that the container has in addition to its image.
	Mounts []Mount
	// ReadOnlyRoot makes the image read-only. /tmp is then a tmpfs, unless Mounts has something
	// else there.
	ReadOnlyRoot bool

	// Network is the engine's network to be on: "none" for none at all (everything works, Dial
	// too), "host", or one of "docker network ls". Default: the engine's default, a bridge to the
	// outside.
	Network string
	// Publish are TCP ports of the box that the engine publishes on 127.0.0.1 of its machine, as
	// docker run -p 127.0.0.1::PORT does. Each becomes a free port, which DockerSSHBox.Published
	// returns, and every user of that machine can connect to it. Dial does not need them. They need
	// a Network. Default: none.
	Publish []int
	// ExtraHosts are added to /etc/hosts, "name:address"; the address "host-gateway" is the
	// engine's machine.
	ExtraHosts []string
	// DNS are the addresses of name servers. Default: the engine's.
	DNS []string
	// Hostname is the container's own name. Default: the container's short id.
	Hostname string

	// Memory is how much memory the container may use, swap included, in bytes. The engine's
	// minimum is 6 MiB. Default: no limit.
	Memory int64
	// CPUs is how much processor time the container may use, in processors: 1.5 is one and a half.
	// Default: no limit.
	CPUs float64
	// PIDs is how many processes and threads the container may have. Default: 4096; negative: no
	// limit.
	PIDs int64
	// ShmSize is the size of /dev/shm in bytes. Default: the engine's, 64 MiB.
	ShmSize int64
	// GPUs is how many of the machine's GPUs the container gets, -1 for all. Default: none.
	GPUs int

	// CapAdd are capabilities that root in the container has in addition to the default ones:
	// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETUID, SETGID, KILL, with which apt-get works. "ALL"
	// adds all.
	CapAdd []string
	// CapDrop are capabilities that root in the container does not have. "ALL" leaves those in
	// CapAdd. A user other than root has no capabilities in any case, not even those in CapAdd.
	CapDrop []string
	// AllowNewPrivileges lets programs gain privileges by set-user-id bits and file capabilities.
	// sudo and su need it. Default: they do not.
	AllowNewPrivileges bool
	// SecurityOpt are further options of "docker run --security-opt": a seccomp or AppArmor
	// profile, SELinux labels.
	SecurityOpt []string
	// Runtime is the engine's runtime to use, as "runsc". Default: the engine's default.
	Runtime string

	// Name is the container's name. Default: "sandshell-" and a random text.
	Name string
	// Labels are added to the container's. Names that begin with "sandshell" are reserved: see New.
	Labels map[string]string

	// StartTimeout bounds the time from the container's creation to the login; pulling the image
	// does not count. Default: 1 min.
	StartTimeout time.Duration

	// Docker is the engine to use, a *client.Client of github.com/moby/moby/client, which stays the
	// caller's to close. Default: the engine that the docker command would use, as DOCKER_HOST,
	// DOCKER_CONTEXT or "docker context use" name it, also over ssh://; else this machine's.
	Docker DockerClient
	// Grace is how long a command that is being killed may take to end after ^C, and again after
	// SIGTERM.
	// Default: 1 s.
	Grace time.Duration
	// StartLimit is how long a shell may take until its first prompt. Default: 30 s.
	StartLimit time.Duration
	// Logger gets what happens beside the results, and at debug level each command: see
	// shellbox.Options. Default: none.
	Logger *slog.Logger

	own []mount.Mount // beside Mounts, of this library's
}

// DefaultImage is the image of a Config that names none.
const DefaultImage = "debian:stable-slim"

// A PullPolicy says when an image is pulled.
type PullPolicy string

const (
	// PullMissing pulls an image that the engine does not have.
	PullMissing PullPolicy = ""
	// PullAlways pulls each time: the registry may have a newer image of the same name.
	PullAlways PullPolicy = "always"
	// PullNever never pulls. An image that the engine does not have is an error.
	PullNever PullPolicy = "never"
)

// PullProgress is how far the pulling or the making of an image has got.
type PullProgress struct {
	Image string
	Layer string // the layer's short id; "" if it is about the whole
	// Status is the engine's, "Downloading", "Extracting", "Pull complete", …; or this package's,
	// "Setting up jupyter".
	Status      string
	Done, Total int64 // bytes; Total is 0 when it is not known
}

// defaultPIDs is the limit on processes and threads: enough for parallel builds, and an end to fork
// bombs.
const defaultPIDs = 4096

const defaultLinger = 30 * time.Second

// volumeName is what the engine takes (moby's volume/local).
var volumeName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)

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
	switch c.Pull {
	case PullMissing, PullAlways, PullNever:
	default:
		return c, fmt.Errorf("Config.Pull is %q: it can be PullMissing, PullAlways or PullNever",
			c.Pull)
	}
	if err := plugin.Check(c.Plugins...); err != nil {
		return c, fmt.Errorf("Config.Plugins: %w", err)
	}
	if c.PackageCache != "" && !volumeName.MatchString(c.PackageCache) {
		return c, fmt.Errorf("Config.PackageCache is %q: it has to be a volume's name, of "+
			"letters, digits, \"_\", \".\" and \"-\"", c.PackageCache)
	}
	if c.Dir != "" && c.Dir[0] != '/' {
		return c, fmt.Errorf("Config.Dir is %q: it has to be absolute", c.Dir)
	}
	if err := c.checkPublish(); err != nil {
		return c, err
	}
	if err := environ.Check(c.Env); err != nil {
		return c, fmt.Errorf("Config.Env: %w", err)
	}
	if c.PIDs == 0 {
		c.PIDs = defaultPIDs
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = time.Minute
	}
	c.Logger = c.log()
	return c, nil
}

// log is the logger.
func (c Config) log() *slog.Logger {
	return guard.Logger(c.Logger)
}

func (c Config) checkPublish() error {
	for _, port := range c.Publish {
		if port < 1 || port > 65535 {
			return fmt.Errorf("Config.Publish has %d: it has to be from 1 to 65535", port)
		}
	}
	if len(c.Publish) > 0 && (c.Network == "none" || c.Network == "host") {
		return fmt.Errorf("Config.Publish: on the network %q the engine publishes nothing",
			c.Network)
	}
	return nil
}
