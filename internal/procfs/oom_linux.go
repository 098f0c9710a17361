package procfs

import (
	"bytes"
	"errors"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An OOMCounter counts the processes of this process's cgroup that the kernel has killed because
// the memory of the cgroup, or of the machine, had run out. Its method may be called concurrently.
type OOMCounter struct {
	file *os.File // owns fd
	fd   uintptr
}

// OpenOOMCounter opens the counter of this process's cgroup, of version 1 or 2. If there is none,
// as in gVisor, it returns an error.
func OpenOOMCounter() (*OOMCounter, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	err = errors.ErrUnsupported
	for _, name := range oomFiles(string(mounts), string(groups)) {
		var f *os.File
		if f, err = os.Open(name); err != nil {
			continue
		}
		c := &OOMCounter{f, f.Fd()}
		if _, err = c.Kills(); err == nil {
			return c, nil
		}
		f.Close()
	}
	return nil, err
}

// oomFiles returns the files that may hold the counter, given the contents of /proc/self/mountinfo
// and /proc/self/cgroup. The mount's root is the process's cgroup in a cgroup namespace, and where
// an engine has mounted only the container's own cgroup. On a machine with both versions, one of
// them has the memory controller.
func oomFiles(mounts, groups string) []string {
	paths := map[string]string{} // by controller; that of version 2 is ""
	for line := range strings.Lines(groups) {
		if fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(fields) == 3 {
			for _, controller := range strings.Split(fields[1], ",") {
				paths[controller] = fields[2]
			}
		}
	}
	var files []string
	for line := range strings.Lines(mounts) {
		mount, source, _ := strings.Cut(line, " - ")
		// proc(5): where[3] is the root, where[4] the mount point; what is type, source, options
		where, what := strings.Fields(mount), strings.Fields(source)
		if len(where) < 5 || len(what) < 3 {
			continue
		}
		var controller, name string
		switch {
		case what[0] == "cgroup" && slices.Contains(strings.Split(what[2], ","), "memory"):
			controller, name = "memory", "memory.oom_control"
		case what[0] == "cgroup2":
			name = "memory.events"
		default:
			continue
		}
		own, known := paths[controller]
		if below, ok := strings.CutPrefix(own, where[3]); known && ok {
			own = below
		} else {
			own = ""
		}
		files = append(files, path.Join(where[4], own, name))
	}
	return files
}

// Kills returns the count, which only grows.
//
// boxd calls it for each command. It makes a raw system call, of which Go's scheduler does not
// know: for an ordinary one the scheduler would wake its monitor thread, which would then run for a
// while on the processor that the command needs. The call does not block, because the kernel
// answers from memory.
func (c *OOMCounter) Kills() (int64, error) {
	var buf [1 << 10]byte // both files are shorter
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, c.fd, uintptr(unsafe.Pointer(&buf[0])),
		uintptr(len(buf)), 0, 0, 0)
	runtime.KeepAlive(c)
	if errno != 0 {
		return 0, errno
	}
	for line := range bytes.Lines(buf[:n]) {
		if count, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			return strconv.ParseInt(string(bytes.TrimSpace(count)), 10, 64)
		}
	}
	return 0, errors.ErrUnsupported // Linux before 4.13
}
