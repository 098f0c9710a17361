package remotebox

import (
	"errors"
	"os"
	"runtime/debug"
	"syscall"
)

// initPIDNamespace is what /proc/self/ns/pid says outside of all containers (PROC_PID_INIT_INO).
const initPIDNamespace = "pid:[4026531836]"

// HostID identifies where this process's id means this process: the machine's name and, in a
// container, the container's namespace of process ids. A program in a container that has the
// engine's socket and the host's network has the machine's name, but process ids of its own. HostID
// is "" if the machine's name is not known.
func HostID() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	if pids, err := os.Readlink("/proc/self/ns/pid"); err == nil && pids != initPIDNamespace {
		name += " " + pids
	}
	return name
}

// ProcessGone reports whether there is certainly no process with that id. A later process with the
// same id counts as the same process.
func ProcessGone(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return true // Windows opens the process
	}
	defer p.Release()
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// Version is this module's version, "(devel)" if it is not known.
func Version() string {
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
