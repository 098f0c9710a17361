package inspect

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A reader reads files of /proc into a buffer that it uses again. It does so by plain system calls: an os.File asks the poller about
// each, which takes as long as the reading.
type reader struct{ buf []byte }

func newReader() *reader { return &reader{make([]byte, 4096)} }

// read returns the file's content, valid until the next read. A file of a process that ends meanwhile gives ENOENT or ESRCH.
func (r *reader) read(path string) ([]byte, error) {
	fd, err := ignoringEINTR(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
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

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// numbers returns the names in the directory that are numbers: processes in /proc, threads in /proc/PID/task.
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

// A stat is what is asked of /proc/PID/stat, in its own words.
type stat struct {
	comm                             string // the first line of /proc/PID/comm
	state, ppid, pgrp, session       string
	tty, tpgid, threads, start, code string
}

func (r *reader) stat(pid int) (stat, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	line, err := r.read(dir + "/stat")
	if err != nil {
		return stat{}, false
	}
	s, ok := parseStat(line)
	if strings.ContainsAny(s.comm, "\\\n") { // kernels differ in what they make of these two
		name, _ := r.read(dir + "/comm")
		first, _, _ := bytes.Cut(name, []byte("\n"))
		s.comm = string(first)
	}
	return s, ok
}

// parseStat takes the line apart at the last parenthesis, since the command's name may hold any byte.
func parseStat(line []byte) (s stat, ok bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndex(line, []byte(") "))
	if open < 0 || end < open {
		return s, false
	}
	words := bytes.Fields(line[end+2:])
	if len(words) < 24 {
		return s, false
	}
	s.comm = string(line[open+1 : end])
	for i, to := range [24]*string{
		0: &s.state, 1: &s.ppid, 2: &s.pgrp, 3: &s.session, 4: &s.tty, 5: &s.tpgid, 17: &s.threads, 19: &s.start, 23: &s.code,
	} {
		if to != nil {
			*to = string(words[i])
		}
	}
	// A static program that is not position-independent (busybox) lies where it lay before when it executes itself; its stack does not.
	if len(words) > 25 && len(s.code) > 1 { // 0: a zombie
		s.code += string(words[25])
	}
	return s, true
}

// line appends the process as a P line.
func (s stat) line(out []byte, pid int, code, comm string) []byte {
	out = append(out, 'P', ' ')
	out = strconv.AppendInt(out, int64(pid), 10)
	for _, word := range [...]string{s.state, s.ppid, s.pgrp, s.session, s.tty, s.tpgid, s.start, code, comm} {
		out = append(out, ' ')
		out = append(out, word...)
	}
	return append(out, '\n')
}
