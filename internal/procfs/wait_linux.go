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

// maxDescriptors bounds what is believed of a poll or select: the kernel's default for fs.nr_open
// is 1 << 20, programs with more than this do not read terminals.
const maxDescriptors = 1 << 16

// A pts is a pseudoterminal. A container, or another mount of devpts, has terminals of the same
// numbers.
type pts struct {
	dev    uint64 // of the file system (devpts) that it is in
	number int    // as in /proc/PID/stat
}

// A wait is what a thread waits for that is blocked in a call that waits for input.
type wait struct {
	tid     int
	turns   int64
	inputs  []pts // terminals, each once
	reading bool  // a read: it ends when the terminal's modes say so
	masters bool  // the master of a terminal is asked for too
	alone   bool  // nothing but inputs is asked for, and for as long as it takes
}

// A request is what a call asks for, in descriptors.
type request struct {
	input []uint64 // for reading
	rest  []uint64 // for what else there is to wait for; a terminal among them changes nothing
	more  bool     // something else
}

// request returns what the call of the thread with that directory asks for. only, if it is not 0,
// leaves out what epoll says is in another file system.
func (r *reader) request(thread string, k kind, call *sysCall, only uint64) (q request, ok bool) {
	switch k {
	case reads:
		return request{input: call.Args[:1]}, true
	case sends:
		return request{input: call.Args[1:2]}, true
	case restarts:
		if name := r.word(thread+"/wchan", 0); name != "0" && !strings.Contains(name, "poll") {
			return q, false
		}
		return polled(thread, call)
	case polls, ppolls:
		return polled(thread, call)
	case selects:
		return selected(thread, call)
	case epolls, epollsUntil:
		return r.epolled(thread, call.Args[0], only)
	}
	return q, false
}

// memory reads the memory of the thread with that directory.
func memory(thread string, address uint64, into []byte) bool {
	if address > 1<<63-1 {
		return false
	}
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Open(thread+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	n, err := ignoringEINTR(func() (int, error) { return unix.Pread(fd, into, int64(address)) })
	return err == nil && n == len(into)
}

const readable = unix.POLLIN | 0x40 // POLLRDNORM; EPOLLIN and EPOLLRDNORM are the same

// add adds a descriptor with the events of a pollfd or an epoll.
func (q *request) add(fd, events uint64) {
	if events&readable != 0 {
		q.input = append(q.input, fd)
	} else {
		q.rest = append(q.rest, fd)
	}
	q.more = q.more || events&unix.POLLOUT != 0
}

func polled(thread string, call *sysCall) (q request, ok bool) {
	const size = 8 // of struct pollfd: int fd, short events, short revents
	n := call.Args[1]
	if n == 0 || n > maxDescriptors {
		return q, false
	}
	array := make([]byte, n*size)
	if !memory(thread, call.Args[0], array) {
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

func selected(thread string, call *sysCall) (q request, ok bool) {
	n := call.Args[0]
	if n == 0 || n > maxDescriptors {
		return q, false
	}
	set := func(address uint64) (fds []uint64) {
		words := make([]byte, (n+63)/64*8)
		// A 32-bit program has words of 32 bits: the same bits, except on big-endian machines,
		// whose 32-bit programs are not known here.
		if address == 0 || !memory(thread, address, words[:(n+31)/32*4]) {
			return nil
		}
		for i := uint64(0); i < n; i += 64 {
			for word := binary.NativeEndian.Uint64(words[i/8:]); word != 0; word &= word - 1 {
				if fd := i + uint64(bits.TrailingZeros64(word)); fd < n {
					fds = append(fds, fd)
				}
			}
		}
		return fds
	}
	q.input, q.more, q.rest = set(call.Args[1]), set(call.Args[2]) != nil, set(call.Args[3])
	return q, true
}

// epolled reads the set of an epoll: lines such as "tfd: 5 events: 19 data: 5 pos:0 ino:3 sdev:16"
// (fs/eventpoll.c), without pos, ino and sdev before Linux 4.13.
func (r *reader) epolled(thread string, set, only uint64) (q request, ok bool) {
	info, err := r.read(thread + "/fdinfo/" + strconv.FormatUint(set, 10))
	if err != nil {
		return q, false
	}
	for line := range bytes.Lines(info) {
		words := strings.Fields(string(line))
		if len(words) < 4 || words[0] != "tfd:" {
			continue
		}
		fd, err := strconv.ParseUint(words[1], 10, 32)
		events, err2 := strconv.ParseUint(words[3], 16, 32)
		if err != nil || err2 != nil {
			continue
		}
		if only != 0 && foreign(words[len(words)-1], only) {
			q.more = true
			continue
		}
		q.add(fd, events)
	}
	return q, true
}

// maxNests is how deep the kernel lets epolls be within each other (EP_MAX_NESTS, and the
// outermost).
const maxNests = 5

// within puts what an epoll asks for in its place, where it is itself asked for input.
func (r *reader) within(thread string, q request, only uint64, depth int) request {
	for i := 0; i < len(q.input); i++ {
		name := thread + "/fd/" + strconv.FormatUint(q.input[i], 10)
		if link, _ := os.Readlink(name); depth == 0 || link != "anon_inode:[eventpoll]" {
			continue
		}
		inner, ok := r.epolled(thread, q.input[i], only)
		if !ok {
			continue
		}
		inner = r.within(thread, inner, only, depth-1)
		q.input = slices.Replace(slices.Clone(q.input), i, i+1, inner.input...)
		i += len(inner.input) - 1
		q.rest, q.more = append(q.rest, inner.rest...), q.more || inner.more
	}
	return q
}

// foreign reports whether the word says another file system. The kernel prints its own form of a
// device's number: 12 bits and 20.
func foreign(word string, dev uint64) bool {
	hex, found := strings.CutPrefix(word, "sdev:")
	n, err := strconv.ParseUint(hex, 16, 32)
	return found && err == nil && unix.Mkdev(uint32(n>>20), uint32(n&(1<<20-1))) != dev
}

// resolve turns a request into a wait: it looks at what the descriptors are. controlling is the
// process's own terminal, which /dev/tty stands for.
func (q request) resolve(thread string, controlling func() pts) (w wait) {
	w.alone = !q.more
	for i, fd := range slices.Concat(q.input, q.rest) {
		var st unix.Stat_t
		if unix.Stat(thread+"/fd/"+strconv.FormatUint(fd, 10), &st) != nil ||
			st.Mode&unix.S_IFMT != unix.S_IFCHR {
			w.alone = false
			continue
		}
		d, t := device{unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))}, pts{}
		switch {
		case d.slave():
			t = pts{uint64(st.Dev), d.number()}
		case d == ownTerminal:
			t = controlling()
		case d == multiplexer:
			w.masters = true
		}
		if t.number == 0 {
			w.alone = false
		} else if i < len(q.input) && !slices.Contains(w.inputs, t) {
			w.inputs = append(w.inputs, t)
		}
	}
	w.alone = w.alone && len(w.inputs) == 1
	return w
}

// wide reports whether the thread with that directory executes a 64-bit program: by its ELF header.
func wide(thread string) bool {
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
