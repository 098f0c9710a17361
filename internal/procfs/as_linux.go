package procfs

import (
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/fsuser"
	"golang.org/x/sys/unix"
)

// as calls f with the file system ids of the user of the process with that directory, if we may
// take them on and they are not ours. root without CAP_SYS_PTRACE, in a container, sees other
// users' processes only so: the kernel compares these ids (PTRACE_MODE_FSCREDS in ptrace(2)).
func as(dir string, f func()) {
	if unix.Geteuid() != 0 {
		return
	}
	uid, ok := oneID(dir, "Uid:")
	gid, ok2 := oneID(dir, "Gid:")
	if !ok || !ok2 || uid == unix.Geteuid() && gid == unix.Getegid() {
		return
	}
	fsuser.As(fsuser.IDs{UID: uid, GID: gid}, f)
}

// oneID returns the id in that line of the status file if the real, the effective and the saved one
// are the same; else the kernel refuses anyway.
func oneID(dir, line string) (int, bool) {
	ids, ok := newReader().field(dir+"/status", line)
	words := strings.Fields(ids)
	if !ok || len(words) < 3 || words[0] != words[1] || words[1] != words[2] {
		return 0, false
	}
	id, err := strconv.Atoi(words[0])
	return id, err == nil
}
