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

// An OOMCounter tells how many processes of this process's own cgroup the kernel has killed because
// memory had run out: the cgroup's, or the machine's. Its method may be called from several
// goroutines.
type OOMCounter struct {
	file *os.File // keeps fd open
	fd   uintptr
}

// OpenOOMCounter opens the counter of this process's cgroup, of version 1 or 2. Where there is
// none, as in gVisor, it is an error.
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

// oomFiles returns the files that may hold the counter, by what /proc/self/mountinfo and
// /proc/self/cgroup say. In a cgroup namespace, or where an engine has mounted the container's own
// cgroup only, the cgroup is the mount's root. On a machine with both versions, one of them has the
// memory.
func oomFiles(mounts, groups string) []string {
	paths := map[string]string{} // by controller; "": version 2
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
		// see proc(5): … root, mount point, …; type, source, options
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

// Kills returns the count. It only grows. boxd asks for each command: the call is made without
// telling Go's scheduler, which would wake its monitor's thread for it, and that then looks around
// for a while, on the processor that the command is to have. The kernel answers from memory, and
// waits for nothing.
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
