//go:build linux

package outward

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A caller is the process that has called connect, seen from the one thread that answers: it
// becomes the caller's user for the moment of a look, which would change any other goroutine's.
type caller struct {
	dir    string    // of its thread in /proc
	memory int       // a descriptor
	as     *identity // whose rights open what belongs to it; nil: boxd's
}

// An identity is a user and a group.
type identity struct{ uid, gid int }

// openCaller opens the memory of a thread's process. As root, boxd cannot look at processes of
// other users without CAP_SYS_PTRACE, which a container does not have; but with CAP_SETUID it can
// become them.
func openCaller(thread uint32) (*caller, error) {
	c := &caller{dir: "/proc/" + strconv.Itoa(int(thread))}
	err := c.open()
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() == 0 {
		s, serr := c.status()
		if serr != nil {
			return nil, serr
		}
		c.as = &s.identity
		err = c.open()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *caller) open() (err error) {
	c.become(func() {
		c.memory, err = unix.Open(c.dir+"/mem", unix.O_RDWR|unix.O_CLOEXEC, 0)
	})
	return err
}

func (c *caller) close() { unix.Close(c.memory) }

// read reads the caller's memory.
func (c *caller) read(to []byte, at int64) error {
	n, err := unix.Pread(c.memory, to, at)
	if err == nil && n < len(to) {
		return unix.EFAULT
	}
	return err
}

// write writes the caller's memory, also where the caller itself may only read.
func (c *caller) write(from []byte, at int64) error {
	n, err := unix.Pwrite(c.memory, from, at)
	if err == nil && n < len(from) {
		return unix.EFAULT
	}
	return err
}

// become calls f with the rights of the caller's user.
func (c *caller) become(f func()) {
	if c.as == nil {
		f()
		return
	}
	gid, _ := unix.SetfsgidRetGid(c.as.gid)
	uid, _ := unix.SetfsuidRetUid(c.as.uid)
	f()
	unix.SetfsuidRetUid(uid)
	unix.SetfsgidRetGid(gid)
}

// protocol returns what the kernel calls the protocol of a socket of the caller's, such as TCP or
// UDPv6; "" if the descriptor is no socket.
func (c *caller) protocol(descriptor int) string {
	var name [32]byte
	var n int
	var err error
	c.become(func() {
		n, err = unix.Getxattr(c.dir+"/fd/"+strconv.Itoa(descriptor), "system.sockprotoname",
			name[:])
	})
	if err != nil {
		return ""
	}
	return string(bytes.TrimRight(name[:n], "\x00"))
}

// openFlags returns the flags of a descriptor of the caller's.
func (c *caller) openFlags(descriptor int) (flags int, err error) {
	var text string
	c.become(func() {
		text, err = readSmall(c.dir + "/fdinfo/" + strconv.Itoa(descriptor))
	})
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(field(text, "flags:"), 8, 32)
	return int(n), err
}

// A status is what /proc says about a thread and its process.
type status struct {
	identity
	name    string // the thread's
	process int
}

func (c *caller) status() (*status, error) {
	text, err := readSmall(c.dir + "/status")
	if err != nil {
		return nil, err
	}
	s := &status{name: field(text, "Name:")}
	var errs [3]error
	s.process, errs[0] = strconv.Atoi(field(text, "Tgid:"))
	s.uid, errs[1] = strconv.Atoi(effective(field(text, "Uid:")))
	s.gid, errs[2] = strconv.Atoi(effective(field(text, "Gid:")))
	return s, errors.Join(errs[:]...)
}

// effective returns the second word: the real id comes first.
func effective(ids string) string {
	if words := strings.Fields(ids); len(words) > 1 {
		return words[1]
	}
	return ""
}

// program returns the name of the caller's program, as ps shows it.
func (s *status) program(thread uint32) string {
	if int(thread) == s.process {
		return s.name
	}
	name, err := readSmall("/proc/" + strconv.Itoa(s.process) + "/comm")
	if err != nil {
		return s.name
	}
	return strings.TrimSuffix(name, "\n")
}

// field returns the rest of the line that begins with a name.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// readSmall reads a file of /proc that is short.
func readSmall(name string) (string, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var text [4096]byte
	n, err := unix.Read(fd, text[:])
	return string(text[:max(n, 0)]), err
}
