package fsuser

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// becoming is held while a thread has another user's ids: the dumpable attribute of the whole
// process changes with them.
var becoming sync.Mutex

// As calls f on a thread that has these file system ids during the call. Goroutines that f starts
// do not have them. called is false if this process may not take the ids: that needs root with
// CAP_SETUID and CAP_SETGID. With another user's id, f does not have root's rights to files
// (CAP_DAC_OVERRIDE). f must not use access(2) and other calls that check the real ids.
func As(ids IDs, f func()) (called bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		var restored bool
		if called, restored = become(ids, f); restored {
			runtime.UnlockOSThread()
		} // else the thread ends with the goroutine
	}()
	<-done
	return called
}

// become calls f with those ids, and reports whether it was called and whether the thread has its
// own ids again. When the ids change, the kernel makes the process undumpable, which hides it from
// its own user and gives its /proc to root.
func become(ids IDs, f func()) (called, restored bool) {
	becoming.Lock()
	defer becoming.Unlock()
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err == nil && dumpable == 1 {
		defer unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	}
	ownGroups, err := os.Getgroups()
	regroup := err == nil && ids.Groups != nil && !slices.Equal(ids.Groups, ownGroups)
	if err != nil || regroup && !setGroups(ids.Groups) {
		return false, true
	}
	for _, take := range []func(IDs) (taken bool, give func() bool){fileSystemIDs, effectiveIDs} {
		taken, give := take(ids)
		if called = taken; taken {
			f()
		}
		if !give() {
			return called, false
		}
		if called {
			break
		}
	}
	return called, !regroup || setGroups(ownGroups)
}

// fileSystemIDs sets the thread's file system ids. give restores its own, and reports whether it
// could.
func fileSystemIDs(ids IDs) (taken bool, give func() bool) {
	// Both calls return the previous id, and no error. With -1 they change nothing. The group is
	// set first: that needs root's rights.
	set := func(call, id uintptr) int {
		before, _, _ := unix.RawSyscall(call, id, 0, 0)
		return int(before)
	}
	const none = ^uintptr(0)
	ownGID := set(setfsgid, uintptr(ids.GID))
	ownUID := set(setfsuid, uintptr(ids.UID))
	taken = set(setfsuid, none) == ids.UID && set(setfsgid, none) == ids.GID
	return taken, func() bool {
		if ownUID < 0 || ownGID < 0 { // there is no such call
			return true
		}
		set(setfsuid, uintptr(ownUID))
		set(setfsgid, uintptr(ownGID))
		return set(setfsuid, none) == ownUID && set(setfsgid, none) == ownGID
	}
}

// effectiveIDs sets the thread's effective ids, which the file system ids follow. It is for gVisor,
// which has no calls for the file system ids alone. The saved ids stay, so give can restore the
// others. (unix.Setresuid sets the ids of all threads.)
func effectiveIDs(ids IDs) (taken bool, give func() bool) {
	set := func(call uintptr, id int) bool {
		const same = ^uintptr(0)
		_, _, errno := unix.RawSyscall(call, same, uintptr(id), same)
		return errno == 0
	}
	ownUID, ownGID := effective()
	if !set(setresgid, ids.GID) {
		return false, func() bool { return true }
	}
	taken = set(setresuid, ids.UID)
	return taken, func() bool {
		uid, gid := set(setresuid, ownUID), set(setresgid, ownGID)
		return uid && gid
	}
}

// effective returns the thread's effective ids.
func effective() (uid, gid int) {
	u, _, _ := unix.RawSyscall(geteuid, 0, 0, 0)
	g, _, _ := unix.RawSyscall(getegid, 0, 0, 0)
	return int(u), int(g)
}

// setGroups sets the thread's supplementary groups. (syscall.Setgroups sets those of all threads.)
func setGroups(ids []int) bool {
	list := make([]uint32, len(ids)+1) // one more, so that there is a first element
	for i, id := range ids {
		list[i] = uint32(id)
	}
	_, _, errno := unix.RawSyscall(setgroups, uintptr(len(ids)), uintptr(unsafe.Pointer(&list[0])),
		0)
	return errno == 0
}
