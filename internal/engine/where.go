package engine

import "os"

// hostPIDs is what /proc/self/ns/pid says outside of all containers (PROC_PID_INIT_INO).
const hostPIDs = "pid:[4026531836]"

// Host is where this process's id means this process: the machine's name and, in a container, the container's processes. A program in a container that has the
// engine's socket, and the host's network, has the machine's name; but its process ids are its own.
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
