package sshbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
)

// ofEngine are the files that the engine makes for each container.
var ofEngine = []string{"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}

// mountsMax bounds the list of mounts of a box.
const mountsMax = 1 << 20

// ownTmpfs returns where a tmpfs is mounted of which the engine does not know. gVisor mounts one on
// /tmp if the image has nothing there.
func (b *DockerSSHBox) ownTmpfs(ctx context.Context) (paths []string) {
	list, err := b.Files().ReadFile(ctx, "/proc/1/mounts", mountsMax)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[2] == "tmpfs" && !slices.ContainsFunc(
			[]string{"/proc", "/sys", "/dev"}, func(dir string) bool {
				return fields[1] == dir || strings.HasPrefix(fields[1], dir+"/")
			}) {
			paths = append(paths, unescapeMount.Replace(fields[1]))
		}
	}
	return paths
}

// unescapeMount undoes what the kernel does to paths in /proc/PID/mounts.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// tmpfsMount ends the What of a Loss of a tmpfs.
const tmpfsMount = " (tmpfs)"

func isTmpfs(l sandbox.Loss) bool { return strings.HasSuffix(l.What, tmpfsMount) }

// lostMounts returns what is mounted in the box, and so not in an image of it. What cannot be
// changed there is no loss, nor is an empty tmpfs.
func (b *DockerSSHBox) lostMounts(ctx context.Context,
	c *container.InspectResponse) (lost []sandbox.Loss) {
	add := func(path, what string) {
		lost = append(lost, sandbox.Loss{Kind: sandbox.Mounts,
			What: printable.Line(path) + " (" + what + ")"})
	}
	tmpfs := []string{"/dev/shm"}
	for path := range c.HostConfig.Tmpfs {
		tmpfs = append(tmpfs, path)
	}
	for _, m := range c.Mounts {
		switch {
		case !m.RW || strings.HasPrefix(wire.Path, m.Destination+"/"):
		case m.Type == mount.TypeTmpfs:
			tmpfs = append(tmpfs, m.Destination)
		case m.Type == mount.TypeVolume:
			add(m.Destination, "volume")
		default:
			add(m.Destination, "directory or file of the engine's machine")
		}
	}
	tmpfs = append(tmpfs, b.ownTmpfs(ctx)...)
	slices.Sort(tmpfs)
	for _, path := range slices.Compact(tmpfs) {
		if entries, err := b.Files().ReadDir(ctx, path); err != nil || len(entries) > 0 {
			add(path, "tmpfs")
		}
	}
	made := b.filesMade(ctx, c)
	for _, path := range ofEngine {
		// SFTP tells whole seconds only.
		found, err := b.host.engine.ContainerStatPath(ctx, c.ID,
			client.ContainerStatPathOptions{Path: path})
		if err == nil && !made.IsZero() && found.Stat.Mtime.After(made) {
			add(path, "the engine's, changed since")
		}
	}
	return lost
}

// filesMade returns a time after the engine has made its files and before any program of the box
// has run, or zero if it is not known. Some engines make them after the StartedAt that they tell
// (Docker 29), but before boxd, the first program. In a container that was started from a
// checkpoint, boxd is older than the files.
func (b *DockerSSHBox) filesMade(ctx context.Context, c *container.InspectResponse) time.Time {
	made, _ := time.Parse(time.RFC3339Nano, c.State.StartedAt)
	// An earlier boxd, in a box that was attached to, cannot say.
	if boxd, err := b.host.Started(ctx); err == nil && boxd.After(made) {
		made = boxd
	}
	return made
}
