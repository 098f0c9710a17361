package procfs

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/fsuser"
)

// asOwnerOf calls f with the file system ids of the user who owns the process with that directory.
// It does nothing if these are this process's own ids, or if it may not assume them. In a
// container, root without CAP_SYS_PTRACE can look at other users' processes only in this way,
// because the kernel compares file system ids (PTRACE_MODE_FSCREDS in ptrace(2)).
func asOwnerOf(dir string, f func()) {
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

// oneID returns the id in that line of the status file. It reports false if the real, the effective
// and the saved id differ: the kernel refuses such a process to anybody without CAP_SYS_PTRACE.
func oneID(dir, line string) (int, bool) {
	ids, ok := newReader().field(dir+"/status", line)
	words := strings.Fields(ids)
	if !ok || len(words) < 3 || words[0] != words[1] || words[1] != words[2] {
		return 0, false
	}
	id, err := strconv.Atoi(words[0])
	return id, err == nil
}
