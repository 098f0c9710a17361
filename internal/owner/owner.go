// Package owner says who a process is to others: what boxes are marked with, so that another
// process knows whether their owner is still there.
package owner

import (
	"errors"
	"os"
	"runtime/debug"
	"syscall"
)

// hostPIDs is what /proc/self/ns/pid says outside of all containers (PROC_PID_INIT_INO).
const hostPIDs = "pid:[4026531836]"

// Host is where this process's id means this process: the machine's name and, in a container, the
// container's processes. A program in a container that has the engine's socket, and the host's
// network, has the machine's name; but its process ids are its own.
func Host() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	if pids, err := os.Readlink("/proc/self/ns/pid"); err == nil && pids != hostPIDs {
		name += " " + pids
	}
	return name
}

// Gone reports whether there is certainly no process of that id. A later process with the same id
// counts as the same one.
func Gone(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return true // Windows opens it
	}
	defer p.Release()
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// Version is this module's version.
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
