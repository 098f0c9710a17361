package procfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"golang.org/x/sys/unix"
)

// markedTree returns the processes that are Marked with word and all their descendants, without
// those that have ended. It is for a caller that kills them and calls it again until none is left.
// before is the previous result: those of its processes that still exist are returned too, because
// a process that is ending loses its environment before it closes its files.
func markedTree(word string, before []proc.Process) []proc.Process {
	var pids []int
	for _, p := range before {
		pids = append(pids, p.PID)
	}
	left := proc.Left(before, Alive(pids...))
	pids = marked(word, numericNames("/proc"))
	for _, p := range left {
		pids = append(pids, p.PID)
	}
	return slices.DeleteFunc(Tree(pids...), func(p proc.Process) bool { return p.Ended() })
}

// Marked returns the ids of the processes that had word in their environment when they executed
// their program. It leaves out processes that are older than this one: this process or what it has
// started must have given them the word. For an empty word it returns none.
func Marked(word string) []int { return marked(word, ownGeneration.young()) }

// marked returns those of the processes that had word in their environment.
func marked(word string, pids []int) []int {
	if word == "" {
		return nil // every environment contains the empty word
	}
	r := newReader()
	var found []int
	for _, pid := range pids {
		env, whole, shown := r.environ(pid)
		for begin := time.Now(); shown && !whole &&
			time.Since(begin) < execTimeout; env, whole, shown = r.environ(pid) {
			time.Sleep(100 * time.Microsecond)
		}
		if shown && bytes.Contains(env, []byte(word)) {
			found = append(found, pid)
		}
	}
	return found
}

// execTimeout bounds the wait for the end of an exec. An exec takes less than a millisecond, but
// hundreds of milliseconds on a very busy machine.
const execTimeout = 500 * time.Millisecond

// environ returns the environment of a process. whole is false while the process executes another
// program, because some of the environment may be missing then. shown is false if the process has
// ended, or if the kernel does not show its environment to this process.
func (r *reader) environ(pid int) (env []byte, whole, shown bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	var err error
	var s stat
	look := func() {
		if env, err = r.read(dir + "/environ"); err == nil {
			env = bytes.Clone(env)
			s, shown = r.stat(pid)
		}
	}
	if look(); errors.Is(err, os.ErrPermission) {
		asOwnerOf(dir, look)
	}
	if len(env) == 0 { // a sleeping process is not in the middle of an exec, so it really has none
		return nil, s.kernelThread || s.Ended() || s.State == "S" || s.State == "T", shown
	}
	return env, s.envEnd == 0 || uint64(len(env)) == s.envEnd-s.envStart, shown
}

// endLimit bounds the time that processes have to end after SIGKILL. It is reached only if one does
// not end because it is in the kernel.
const endLimit = 5 * time.Second

// EndMarked ends the processes that are Marked with word and all their descendants, and waits until
// they have ended. If grace is positive, it sends SIGHUP, SIGTERM and SIGCONT, and SIGKILL only
// after grace. It does not end this process. The error says that processes may be left, because ctx
// has ended, because some do not end, or because this process may not signal them.
func EndMarked(ctx context.Context, word string, grace time.Duration) error {
	begin := time.Now()
	var left []proc.Process
	refused := map[int]proc.Process{} // those that this process may not signal
	for first := true; ; first = false {
		var signals []unix.Signal
		pause := 10 * time.Millisecond
		switch {
		case time.Since(begin) >= grace:
			signals, pause = []unix.Signal{unix.SIGKILL}, time.Millisecond
		case first:
			signals = []unix.Signal{unix.SIGHUP, unix.SIGTERM, unix.SIGCONT}
		}
		left = slices.DeleteFunc(markedTree(word, left), func(p proc.Process) bool {
			if p.PID == os.Getpid() {
				return true
			}
			var err error
			for _, sig := range signals {
				err = unix.Kill(p.PID, sig)
			}
			if err == unix.EPERM {
				refused[p.PID] = p
			}
			return err != nil
		})
		switch {
		case len(left) == 0:
			return refusedError(refused)
		case time.Since(begin) > grace+endLimit:
			return fmt.Errorf("%d processes survive SIGKILL, the first is %d", len(left),
				left[0].PID)
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("processes may be left"), ctxerr.Of(ctx))
		case <-time.After(pause):
		}
	}
}

// refusedError returns an error if one of these processes has not ended.
func refusedError(refused map[int]proc.Process) error {
	alive := Alive(slices.Collect(maps.Keys(refused))...)
	for _, p := range proc.Left(slices.Collect(maps.Values(refused)), alive) {
		return fmt.Errorf("process %d may not be ended: %w", p.PID, unix.EPERM)
	}
	return nil
}
