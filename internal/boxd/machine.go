//go:build linux

package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/procfs"
	"golang.org/x/sys/unix"
)

// These are the files of a box on a machine. Each box has a directory of its own, which only its
// user may enter.
const (
	machineSocket = "socket"
	machineInfo   = "info"  // a wire.Machine; boxd holds a lock on it until it ends
	machineMarks  = "marks" // a mark a line; see noteMark
	machineLog    = "log"
	// machineProgram is a link to the program. join needs the program even if another version has
	// replaced it, or Prune has removed it.
	machineProgram = "boxd"
)

// The descriptors that start passes to boxd.
const (
	listenerFD = 3
	lockFD     = 4
)

// errNoBox says that boxd has ended.
var errNoBox = errors.New("reach the box: its boxd has ended")

// socketOf returns the name of a box's socket. In a container, box is the id. On a machine, box is
// the directory, and this process changes to it: the directory's path may be longer than the name
// of a socket may be (108 bytes).
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

// inheritedListener returns the socket that start has opened. The descriptor of the lock stays
// open.
func (s *server) inheritedListener() (*net.UnixListener, error) {
	f := os.NewFile(listenerFD, machineSocket)
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// fromSameUser reports whether the process at the other end belongs to boxd's user.
func fromSameUser(c *net.UnixConn) bool {
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

// On a machine, noteMark writes down the word in their environment by which a box's processes are
// found (shellbox.Box.Mark). If boxd is killed, the word finds the processes that it leaves
// running. A program with that mark may be started once noteMark has returned.
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

// destroy kills all programs and removes the box's directory. The caller ends boxd afterwards: no
// program is started from then on, and a second call waits for that end.
func (s *server) destroy() {
	s.killAll()
	s.marking.Lock() // stays locked: the directory gets no file from here on
	if err := os.RemoveAll(s.dir); err != nil {
		s.log.Error("remove the box's directory", "error", err)
	}
}

// killLimit bounds the killing. It is reached only if a process cannot be killed, such as one that
// has become root.
const killLimit = 5 * time.Second

// killAll kills all descendants of boxd, and all processes with a mark. Daemons are descendants
// too, because boxd is the subreaper.
func (s *server) killAll() {
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
		procfs.EndMarked(context.Background(), word+".", 0) // an error leaves nothing else to do
	}
}
