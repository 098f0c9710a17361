package procfs

import (
	"bytes"
	"errors"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"golang.org/x/sys/unix"
)

// A reader reads files of /proc into a buffer that it uses again. It uses plain system calls: an
// os.File would register each file with the poller, which takes as long as reading it.
type reader struct{ buf []byte }

func newReader() *reader { return &reader{make([]byte, 4096)} }

// read returns the file's content, valid until the next read. A file of a process that ends
// meanwhile gives ENOENT or ESRCH.
func (r *reader) read(path string) ([]byte, error) {
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
		if n == 0 {
			return r.buf[:size], nil
		}
		size += n
	}
}

// field returns what follows that word at the beginning of one of the file's lines.
func (r *reader) field(path, name string) (string, bool) {
	content, _ := r.read(path)
	for line := range bytes.Lines(content) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return string(bytes.TrimSpace(rest)), true
		}
	}
	return "", false
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// numbers returns the names in the directory that are numbers: processes in /proc, threads in
// /proc/PID/task.
func numbers(dir string) []int {
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

// A stat is what is asked of /proc/PID/stat.
type stat struct {
	proc.Process
	threadCount int
	kernel      bool // it has no program: a thread of the kernel

	envStart, envEnd uint64 // where its environment is in its memory; 0: not known yet, or not told
}

func (r *reader) stat(pid int) (stat, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	line, err := r.read(dir + "/stat")
	if err != nil {
		return stat{}, false
	}
	s, ok := parseStat(line)
	s.PID = pid
	if s.State == "Z" && s.threadCount > 1 { // only its main thread has ended
		s.State = "S"
	}
	if strings.ContainsAny(s.Name, "\\\n") { // kernels escape these two in different ways
		name, _ := r.read(dir + "/comm")
		first, _, _ := bytes.Cut(name, []byte("\n"))
		s.Name = string(first)
	}
	return s, ok
}

// withImage returns p with its Image, where the kernel tells that only to the process's own user,
// or in another way.
func (r *reader) withImage(p proc.Process) proc.Process {
	if p.Image == "" && p.State != "Z" && p.State != "X" {
		dir := "/proc/" + strconv.Itoa(p.PID)
		as(dir, func() {
			if s, ok := r.stat(p.PID); ok {
				p.Image = s.Image
			}
		})
		if p.Image == "" {
			p.Image = r.vector(dir)
		}
	}
	return p
}

// vector stands for the addresses that stat does not tell in gVisor: it is made of those that the
// kernel handed to the program when it was executed.
func (r *reader) vector(dir string) string {
	addresses, err := r.read(dir + "/auxv")
	if err != nil || len(addresses) == 0 {
		return ""
	}
	sum := fnv.New64a()
	sum.Write(addresses)
	return strconv.FormatUint(sum.Sum64(), 16)
}

// threads returns the ids of the threads of the process, whose directory is dir.
func (s *stat) threads(dir string) []int {
	if s.threadCount == 1 {
		return []int{s.PID}
	}
	ids := numbers(dir + "/task")
	slices.Sort(ids)
	return ids
}

// parseStat takes the line apart at the last parenthesis, since the command's name may hold any
// byte.
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
	s.kernel = number(6)&kernelThread != 0
	s.Start, _ = strconv.ParseInt(word(19), 10, 64)
	if len(words) > 48 {
		s.envStart, _ = strconv.ParseUint(word(47), 10, 64)
		s.envEnd, _ = strconv.ParseUint(word(48), 10, 64)
	}
	// The address of the program's code; 0: a zombie, 1: it is not for us to see. A static program
	// that is not position-independent (busybox) lies where it lay before when it executes itself;
	// its stack does not.
	if code := word(23); len(code) > 1 {
		s.Image = code
		if len(words) > 25 {
			s.Image += word(25)
		}
	}
	return s, true
}
