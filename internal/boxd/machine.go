//go:build linux

package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs"
	"golang.org/x/sys/unix"
)

// A box on a machine has a directory of its own, which only its user may enter. These are the files
// in it.
const (
	machineSocket = "socket"
	machineInfo   = "info"  // a wire.Machine; boxd holds a lock on it as long as it lives
	machineMarks  = "marks" // a line each: see noteMark
	machineLog    = "log"
	// a link to the program: join needs it although another version may have taken its place, or
	// Prune have removed it
	machineProgram = "boxd"
)

// The descriptors that start hands over.
const (
	listenerFD = 3
	lockFD     = 4
)

// errNoBox: boxd has ended.
var errNoBox = errors.New("reach the box: its boxd has ended")

// socketOf returns the name of a box's socket: in a container, by its id; on a machine, by its
// directory. That may have a longer path than a socket's name may (108 bytes): so this process goes
// there.
func socketOf(box string) (string, error) {
	if !strings.Contains(box, "/") {
		return wire.SocketName(box), nil
	}
	if err := os.Chdir(box); errors.Is(err, os.ErrNotExist) {
		return "", errNoBox
	} else if err != nil {
		return "", err
	}
	if _, err := os.Stat(machineSocket); errors.Is(err, os.ErrNotExist) {
		return "", errNoBox
	}
	return machineSocket, nil
}

// inherited returns the socket that start has opened, and keeps the lock.
func (s *server) inherited() (*net.UnixListener, error) {
	f := os.NewFile(listenerFD, machineSocket)
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// ofOwnUser reports whether the process at the other end is this user's.
func ofOwnUser(c *net.UnixConn) bool {
	conn, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	conn.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return err == nil && cred != nil && cred.Uid == uint32(os.Geteuid())
}

// noteMark writes down by which word in their environment a box's processes are known
// (shellbox.Box.Mark), on a machine. If boxd is killed, what it leaves running is found by it. A
// program with that mark may be started once noteMark has returned.
//
// The file is in the user's home, which may be on a network and stall. So only programs that are to
// be started wait for it.
func (s *server) noteMark(env []string) {
	i := slices.IndexFunc(env, func(kv string) bool {
		return strings.HasPrefix(kv, "SANDSHELL_SESSION=")
	})
	if s.dir == "" || i < 0 {
		return
	}
	word, _, dotted := strings.Cut(env[i], ".")
	if !dotted || strings.Contains(word, "\n") || s.marked(word) {
		return
	}
	s.marking.Lock()
	defer s.marking.Unlock()
	if s.marked(word) {
		return
	}
	if err := appendLine(filepath.Join(s.dir, machineMarks), word+"."); err != nil {
		s.log.Error("note the mark", "error", err)
	}
	s.mu.Lock()
	s.marks[word] = true
	s.mu.Unlock()
}

// marked reports whether noteMark has noted word.
func (s *server) marked(word string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[word]
}

func appendLine(name, line string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// vanish ends all programs, and removes the box's directory. Whoever calls it ends boxd then:
// nothing starts any more, and a second call waits for that end.
func (s *server) vanish() {
	s.endAll()
	s.marking.Lock() // stays locked: the directory gets no file from here on
	if err := os.RemoveAll(s.dir); err != nil {
		s.log.Error("remove the box's directory", "error", err)
	}
}

// killLimit bounds the killing. It is reached only if a process of another user's is left, as of a
// program that has become root.
const killLimit = 5 * time.Second

// endAll kills all that descends from boxd: as it is the subreaper, daemons do, too; and all that
// is marked.
func (s *server) endAll() {
	s.starting.Lock() // stays locked: no program is started from here on
	s.mu.Lock()
	marks := s.marks
	s.marks = map[string]bool{}
	s.mu.Unlock()
	for end := time.Now().Add(killLimit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		killed := 0
		for _, p := range procfs.Tree(os.Getpid())[1:] {
			if !p.Ended() && unix.Kill(p.PID, unix.SIGKILL) == nil {
				killed++
			}
		}
		if killed == 0 {
			break
		}
	}
	for word := range marks {
		killMarked(word + ".")
	}
}

// killMarked kills the processes that have word in their environment, and what descends from them,
// and waits until they have ended.
func killMarked(word string) {
	var left []proc.Process
	for end := time.Now().Add(killLimit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		left = slices.DeleteFunc(procfs.MarkedTree(word, left), func(p proc.Process) bool {
			return p.PID == os.Getpid() || unix.Kill(p.PID, unix.SIGKILL) != nil
		})
		if len(left) == 0 {
			return
		}
	}
}
