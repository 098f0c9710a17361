package fsuser

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// idsMu is held while a thread has another user's ids, because the dumpable attribute of the whole
// process changes with them.
var idsMu sync.Mutex

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
	idsMu.Lock()
	defer idsMu.Unlock()
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err == nil && dumpable == 1 {
		defer unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	}
	ownGroups, err := os.Getgroups()
	regroup := err == nil && ids.Groups != nil && !slices.Equal(ids.Groups, ownGroups)
	if err != nil || regroup && !setGroups(ids.Groups) {
		return false, true
	}
	for _, set := range []func(IDs) (taken bool, restore func() bool){
		setFileSystemIDs, setEffectiveIDs} {
		taken, restore := set(ids)
		if called = taken; taken {
			f()
		}
		if !restore() {
			return called, false
		}
		if called {
			break
		}
	}
	return called, !regroup || setGroups(ownGroups)
}

// setFileSystemIDs sets the thread's file system ids. restore restores its own ids, and reports
// whether it could.
func setFileSystemIDs(ids IDs) (taken bool, restore func() bool) {
	// Both calls return the previous id, and no error. With -1 they change nothing. The group is
	// set first, because that needs root's rights.
	set := func(call, id uintptr) int {
		before, _, _ := unix.RawSyscall(call, id, 0, 0)
		return int(before)
	}
	const none = ^uintptr(0)
	ownGID := set(setfsgid, uintptr(ids.GID))
	ownUID := set(setfsuid, uintptr(ids.UID))
	taken = set(setfsuid, none) == ids.UID && set(setfsgid, none) == ids.GID
	return taken, func() bool {
		if ownUID < 0 || ownGID < 0 { // the kernel has no such call
			return true
		}
		set(setfsuid, uintptr(ownUID))
		set(setfsgid, uintptr(ownGID))
		return set(setfsuid, none) == ownUID && set(setfsgid, none) == ownGID
	}
}

// setEffectiveIDs sets the thread's effective ids, and with them its file system ids. It is for
// gVisor, which has no calls for the file system ids alone. The saved ids stay, so that restore can
// restore the others. (unix.Setresuid would set the ids of all threads.)
func setEffectiveIDs(ids IDs) (taken bool, restore func() bool) {
	set := func(call uintptr, id int) bool {
		const same = ^uintptr(0)
		_, _, errno := unix.RawSyscall(call, same, uintptr(id), same)
		return errno == 0
	}
	ownUID, ownGID := effectiveIDs()
	if !set(setresgid, ids.GID) {
		return false, func() bool { return true }
	}
	taken = set(setresuid, ids.UID)
	return taken, func() bool {
		uid, gid := set(setresuid, ownUID), set(setresgid, ownGID)
		return uid && gid
	}
}

// effectiveIDs returns the thread's effective ids.
func effectiveIDs() (uid, gid int) {
	u, _, _ := unix.RawSyscall(geteuid, 0, 0, 0)
	g, _, _ := unix.RawSyscall(getegid, 0, 0, 0)
	return int(u), int(g)
}

// setGroups sets the thread's supplementary groups. (syscall.Setgroups would set those of all
// threads.)
func setGroups(ids []int) bool {
	list := make([]uint32, len(ids)+1) // one more, so that there is a first element
	for i, id := range ids {
		list[i] = uint32(id)
	}
	_, _, errno := unix.RawSyscall(setgroups, uintptr(len(ids)), uintptr(unsafe.Pointer(&list[0])),
		0)
	return errno == 0
}
