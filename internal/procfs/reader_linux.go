package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// A reader reads files of /proc into a buffer that it reuses. It makes plain system calls, because
// an os.File would register each file with Go's poller, which takes as long as to read the file.
type reader struct{ buf []byte }

func newReader() *reader { return &reader{make([]byte, 4096)} }

// read returns the content of the file. It is valid until the next read. If the file's process has
// ended, or ends during the read, the error is ENOENT or ESRCH.
func (r *reader) read(path string) ([]byte, error) {
	return r.readUntil(path, false, math.MaxInt)
}

// readLine is read for a file that the kernel returns whole in one call, if there is room for it.
func (r *reader) readLine(path string) ([]byte, error) {
	return r.readUntil(path, true, math.MaxInt)
}

// readUpTo is read, but it returns the first maxSize bytes at most.
func (r *reader) readUpTo(path string, maxSize int) ([]byte, error) {
	return r.readUntil(path, false, maxSize)
}

func (r *reader) readUntil(path string, oneRead bool, maxSize int) ([]byte, error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for size := 0; ; {
		if size == len(r.buf) {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, r.buf[size:]) })
		if err != nil {
			return nil, err
		}
		if size += n; n == 0 || size >= maxSize {
			return r.buf[:min(size, maxSize)], nil
		}
		if oneRead && size < len(r.buf) {
			return r.buf[:size], nil
		}
	}
}

// field returns the rest of the first line of the file that begins with name, without white space.
func (r *reader) field(path, name string) (string, bool) {
	content, _ := r.read(path)
	for line := range bytes.Lines(content) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return string(bytes.TrimSpace(rest)), true
		}
	}
	return "", false
}

// word returns the i-th word of the file, from 0, or "" if there is none.
func (r *reader) word(path string, i int) string {
	b, _ := r.read(path)
	if words := bytes.Fields(b); i < len(words) {
		return string(words[i])
	}
	return ""
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// numericNames returns the names in the directory that are positive numbers: the processes in
// /proc, the threads in /proc/PID/task.
func numericNames(dir string) []int {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	var found []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n > 0 {
			found = append(found, n)
		}
	}
	return found
}

// A stat is the content of /proc/PID/stat.
type stat struct {
	proc.Process
	threadCount  int
	kernelThread bool

	// envStart and envEnd are the addresses of the environment. Both are 0 if it has not been set
	// up yet, or if the kernel does not show them.
	envStart, envEnd uint64
}

func (r *reader) stat(pid int) (stat, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	line, err := r.readLine(dir + "/stat")
	if err != nil {
		return stat{}, false
	}
	s, ok := parseStat(line)
	s.PID = pid
	if s.State == "Z" && s.threadCount > 1 { // only its main thread has ended
		s.State = "S"
	}
	if strings.ContainsAny(s.Name, "\\\n") { // how these two are escaped depends on the kernel
		name, _ := r.read(dir + "/comm")
		first, _, _ := bytes.Cut(name, []byte("\n"))
		s.Name = string(first)
	}
	return s, ok
}

// withImage returns p with its Image set. If /proc/PID/stat does not have it for this process, it
// asks as the process's user, and then takes auxvHash.
func (r *reader) withImage(p proc.Process) proc.Process {
	if p.Image == "" && p.State != "Z" && p.State != "X" {
		dir := "/proc/" + strconv.Itoa(p.PID)
		asOwnerOf(dir, func() {
			if s, ok := r.stat(p.PID); ok {
				p.Image = s.Image
			}
		})
		if p.Image == "" {
			p.Image = r.auxvHash(dir)
		}
	}
	return p
}

// auxvHash returns a Process.Image for gVisor, whose /proc/PID/stat has no addresses. It is a hash
// of the auxiliary vector, which holds addresses that the kernel chose when the program was
// executed.
func (r *reader) auxvHash(dir string) string {
	addresses, err := r.read(dir + "/auxv")
	if err != nil || len(addresses) == 0 {
		return ""
	}
	sum := fnv.New64a()
	sum.Write(addresses)
	return strconv.FormatUint(sum.Sum64(), 16)
}

// threadIDs returns the ids of the process's threads, in the kernel's order: the first thread
// first, then by age. Ids say nothing of that, because they begin again at the kernel's pid_max.
// dir is the process's directory.
func (s *stat) threadIDs(dir string) []int {
	if s.threadCount == 1 {
		return []int{s.PID}
	}
	return numericNames(dir + "/task")
}

// parseStat parses the line of /proc/PID/stat. The command's name ends at the last parenthesis,
// because it may contain any byte.
func parseStat(line []byte) (s stat, ok bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndex(line, []byte(") "))
	if open < 0 || end < open {
		return s, false
	}
	words := bytes.Fields(line[end+2:])
	if len(words) < 24 {
		return s, false
	}
	word := func(i int) string { return string(words[i]) }
	number := func(i int) int {
		n, _ := strconv.Atoi(word(i))
		return n
	}
	s.Name, s.State = string(line[open+1:end]), word(0)
	s.Parent, s.Group, s.Session, s.TTY, s.Foreground = number(1), number(2), number(3), number(4),
		number(5)
	s.threadCount = number(17)
	const kernelThread = 0x00200000 // PF_KTHREAD
	s.kernelThread = number(6)&kernelThread != 0
	s.Start, _ = strconv.ParseInt(word(19), 10, 64)
	if len(words) > 31 {
		blocked, _ := strconv.ParseUint(word(29), 10, 31)
		caught, _ := strconv.ParseUint(word(31), 10, 31)
		s.Blocked, s.Caught = uint32(blocked), uint32(caught)
	}
	if len(words) > 48 {
		s.envStart, _ = strconv.ParseUint(word(47), 10, 64)
		s.envEnd, _ = strconv.ParseUint(word(48), 10, 64)
	}
	// The image is the address of the program's code, and that of its stack. A code address of 0
	// means a zombie, and 1 that this process may not see it. A static program that is not
	// position-independent (busybox) has the same code address after it has executed itself, but
	// another stack.
	if code := word(23); len(code) > 1 {
		s.Image = code
		if len(words) > 25 {
			s.Image += word(25)
		}
	}
	return s, true
}

// Uptime returns the time since the start of the machine, on the clock that Process.Start is on. It
// does not read /proc/uptime, which lxcfs replaces with the container's.
func Uptime() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return time.Duration(t.Nano()), nil
}
