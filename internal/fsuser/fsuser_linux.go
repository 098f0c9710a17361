package fsuser

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// becoming is held while a thread has another user's ids, for the process's dumpable attribute
// changes with them.
var becoming sync.Mutex

// As calls f with these file system ids, on a thread that has them for so long; what f starts in
// other goroutines has them not. It reports whether f was called: not if this process may not take
// them on, which root may, with CAP_SETUID and CAP_SETGID. It has root's rights to files
// (CAP_DAC_OVERRIDE) no more with another user's id. access(2) and what else asks for the real ids
// is not to be used in f.
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

// become calls f with those ids, and reports whether the thread has its own again. The kernel makes
// the process undumpable when they change, which hides it from its own user, and makes its /proc
// root's.
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

// fileSystemIDs sets the thread's file system ids. give undoes that, and reports whether it could.
func fileSystemIDs(ids IDs) (taken bool, give func() bool) {
	// Both calls return the id that was there before, and no error; with no id (-1) they only tell.
	// The group goes first: it takes root's right.
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

// effectiveIDs sets the thread's effective ids, which the file system ids follow: for gVisor, which
// has no calls for those alone. The saved ids stay, so that they can be had back. (unix.Setresuid
// sets all threads'.)
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

// setGroups sets the thread's supplementary groups. (syscall.Setgroups sets all threads'.)
func setGroups(ids []int) bool {
	list := make([]uint32, len(ids)+1) // an element more, for its address
	for i, id := range ids {
		list[i] = uint32(id)
	}
	_, _, errno := unix.RawSyscall(setgroups, uintptr(len(ids)), uintptr(unsafe.Pointer(&list[0])),
		0)
	return errno == 0
}
