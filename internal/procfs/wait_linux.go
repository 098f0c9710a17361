package procfs

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxDescriptors bounds the descriptors that a poll or select is believed to name, and those of all
// calls that one look reads. The kernel allows 1 << 20 by default (fs.nr_open), but no program that
// reads a terminal has so many. maxEpollInfo bounds what is read about an epoll.
const (
	maxDescriptors = 1 << 14
	maxEpollInfo   = 128 * maxDescriptors
)

// A pts is a pseudoterminal. Its number alone does not identify it: a container, or another mount
// of devpts, has terminals with the same numbers.
type pts struct {
	dev    uint64 // device number of the file system (devpts) that it is in
	number int    // as in /proc/PID/stat
}

// A wait says what a blocked thread waits for.
type wait struct {
	tid     int
	turns   int64 // of the thread
	inputs  []pts // terminals whose input it waits for, each once
	reading bool  // it reads: the terminal's modes may end the read without input
	masters bool  // it waits for the master of a terminal too
	guessed bool  // the kernel does not show the call
}

// A request holds the descriptors that a call waits for.
type request struct {
	files []requested
	more  bool // waits for something else too
}

// A requested descriptor is one that a call waits for.
type requested struct {
	fd  uint64
	in  bool // waits for input
	out bool // waits until the file takes output; not set for an edge-triggered epoll
}

func (q *request) hasInput() bool {
	return slices.ContainsFunc(q.files, func(f requested) bool { return f.in })
}

// requestOf returns what the call of the thread with that directory waits for. If onlyDev is not 0,
// requestOf leaves out the files that an epoll says are in another file system.
func (r *reader) requestOf(
	thread string, k callKind, call *sysCall, onlyDev uint64) (q request, ok bool) {
	switch k {
	case readCall, receiveCall:
		return request{files: []requested{{fd: call.Args[0], in: true}}}, true
	case sendfileCall:
		return request{files: []requested{{fd: call.Args[1], in: true}}}, true
	case writeCall:
		return request{files: []requested{{fd: call.Args[0], out: true}}}, true
	case pollCall, ppollCall:
		return readPollFDs(thread, call)
	case selectCall:
		return readFDSets(thread, call)
	case epollCall, epollPwait2Call:
		return r.readEpollSet(thread, call.Args[0], onlyDev)
	}
	return q, false
}

// A memory is the memory of a process. All threads of the process share it.
type memory struct{ fd int } // -1: it is not open

// read fills into from the memory. It opens the memory of the thread with that directory, if none
// is open.
func (m *memory) read(thread string, address uint64, into []byte) bool {
	if address > 1<<63-1 {
		return false
	}
	if m.fd < 0 {
		fd, err := ignoringEINTR(func() (int, error) {
			return unix.Open(thread+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		})
		if err != nil {
			return false
		}
		m.fd = fd
	}
	n, err := ignoringEINTR(func() (int, error) { return unix.Pread(m.fd, into, int64(address)) })
	return err == nil && n == len(into)
}

func (m *memory) close() {
	if m.fd >= 0 {
		unix.Close(m.fd)
	}
}

// readMemory fills into from the memory of the thread with that directory.
func readMemory(thread string, address uint64, into []byte) bool {
	m := memory{fd: -1}
	defer m.close()
	return m.read(thread, address, into)
}

// The events of a poll. Those of an epoll have the same numbers.
const (
	readable = unix.POLLIN | 0x40   // POLLRDNORM
	writable = unix.POLLOUT | 0x100 // POLLWRNORM
)

// add adds a descriptor and the events that a poll or an epoll waits for.
func (q *request) add(fd, events uint64) {
	q.files = append(q.files, requested{fd: fd, in: events&readable != 0,
		out: events&writable != 0 && events&unix.EPOLLET == 0})
}

// readPollFDs returns what a poll waits for.
func readPollFDs(thread string, call *sysCall) (q request, ok bool) {
	const size = 8 // of struct pollfd: int fd, short events, short revents
	n := call.Args[1]
	if n == 0 || n > maxDescriptors {
		return q, n == 0
	}
	array := make([]byte, n*size)
	if !readMemory(thread, call.Args[0], array) {
		return q, false
	}
	for entry := range slices.Chunk(array, size) {
		fd, events := int32(binary.NativeEndian.Uint32(entry)),
			binary.NativeEndian.Uint16(entry[4:])
		if fd >= 0 {
			q.add(uint64(fd), uint64(events))
		}
	}
	return q, true
}

// readFDSets returns what a select waits for.
func readFDSets(thread string, call *sysCall) (q request, ok bool) {
	n := call.Args[0]
	if n == 0 || n > maxDescriptors {
		return q, n == 0
	}
	for i, like := range []requested{{in: true}, {out: true}, {}} {
		address := call.Args[1+i]
		if address == 0 {
			continue
		}
		words := make([]byte, (n+63)/64*8)
		// The words of a 32-bit program have 32 bits. On a little-endian machine the bits are at
		// the same places, and 32-bit programs of big-endian machines are not supported.
		if !readMemory(thread, address, words[:(n+31)/32*4]) {
			return request{}, false
		}
		for i := uint64(0); i < n; i += 64 {
			for word := binary.NativeEndian.Uint64(words[i/8:]); word != 0; word &= word - 1 {
				if like.fd = i + uint64(bits.TrailingZeros64(word)); like.fd < n {
					q.files = append(q.files, like)
				}
			}
		}
	}
	return q, true
}

// readEpollSet returns what an epoll waits for. The kernel prints a line for each descriptor, such
// as "tfd: 5 events: 19 data: 5 pos:0 ino:3 sdev:16" (fs/eventpoll.c). Before Linux 4.13, pos, ino
// and sdev are missing.
func (r *reader) readEpollSet(thread string, set, onlyDev uint64) (q request, ok bool) {
	info, err := r.readUpTo(thread+"/fdinfo/"+strconv.FormatUint(set, 10), maxEpollInfo)
	if err != nil {
		return q, false
	}
	q.more = len(info) == maxEpollInfo
	for line := range bytes.Lines(info) {
		words := strings.Fields(string(line))
		if len(words) < 4 || words[0] != "tfd:" {
			continue
		}
		if len(q.files) == maxDescriptors {
			q.more = true
			break
		}
		fd, err := strconv.ParseUint(words[1], 10, 32)
		events, err2 := strconv.ParseUint(words[3], 16, 32)
		if err != nil || err2 != nil {
			continue
		}
		if onlyDev != 0 && onOtherFS(words[len(words)-1], onlyDev) {
			q.more = true
			continue
		}
		q.add(fd, events)
	}
	return q, true
}

// maxEpollDepth is how deep epolls may be nested: the kernel's EP_MAX_NESTS, and the outermost
// epoll.
const maxEpollDepth = 5

// expandEpolls replaces each epoll from which q wants input with what that epoll waits for.
func (r *reader) expandEpolls(thread string, q request, onlyDev uint64, depth int) request {
	for i := 0; i < len(q.files); i++ {
		name := thread + "/fd/" + strconv.FormatUint(q.files[i].fd, 10)
		if !q.files[i].in || depth == 0 {
			continue
		}
		if link, _ := os.Readlink(name); link != "anon_inode:[eventpoll]" {
			continue
		}
		inner, ok := r.readEpollSet(thread, q.files[i].fd, onlyDev)
		if !ok {
			continue
		}
		inner = r.expandEpolls(thread, inner, onlyDev, depth-1)
		q.files = slices.Replace(slices.Clone(q.files), i, i+1, inner.files...)
		i += len(inner.files) - 1
		q.more = q.more || inner.more
	}
	return q
}

// onOtherFS reports whether the word "sdev:N" names another file system than dev. The kernel prints
// its internal form of a device number: 12 bits for the major number and 20 for the minor.
func onOtherFS(word string, dev uint64) bool {
	hex, found := strings.CutPrefix(word, "sdev:")
	n, err := strconv.ParseUint(hex, 16, 32)
	return found && err == nil && unix.Mkdev(uint32(n>>20), uint32(n&(1<<20-1))) != dev
}

// resolve turns a request into a wait by looking at the files behind the descriptors. controlling
// returns the controlling terminal of the process, which /dev/tty stands for.
func (q request) resolve(thread string, controlling func() pts) (w wait) {
	for _, f := range q.files {
		var st unix.Stat_t
		if unix.Stat(thread+"/fd/"+strconv.FormatUint(f.fd, 10), &st) != nil {
			continue
		}
		t, master := terminalOfFile(&st, controlling)
		w.masters = w.masters || master
		if f.in && t.number != 0 && !slices.Contains(w.inputs, t) {
			w.inputs = append(w.inputs, t)
		}
	}
	return w
}

// terminalOfFile returns the terminal that the file is, or says that it is the master of one.
func terminalOfFile(st *unix.Stat_t, controlling func() pts) (t pts, master bool) {
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return t, false
	}
	switch d := (device{unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))}); {
	case d.isSlave():
		t = pts{uint64(st.Dev), d.ttyNumber()}
	case d == devTTY:
		t = controlling()
	case d == devPtmx:
		return t, true
	}
	return t, false
}

// is64Bit reports whether the process executes a 64-bit program. It asks the kernel once. task is
// the directory of a thread of the process.
func (p *process) is64Bit(task string) bool {
	if p.class == 0 {
		if p.class = 64; !is64Bit(task) {
			p.class = 32
		}
	}
	return p.class == 64
}

// is64Bit reports whether the thread with that directory executes a 64-bit program, by the ELF
// header of the program's file.
func is64Bit(thread string) bool {
	const classAt, class32 = 4, 1 // EI_CLASS, ELFCLASS32
	f, err := os.Open(thread + "/exe")
	if err != nil {
		return true
	}
	defer f.Close()
	var ident [classAt + 1]byte
	_, err = f.ReadAt(ident[:], 0)
	return err != nil || ident[classAt] != class32
}
