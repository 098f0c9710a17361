//go:build linux

package outward

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A call is a connect about which the kernel asks: struct seccomp_notif.
type call struct {
	id     uint64
	thread uint32 // who calls
	flags  uint32
	number int32
	arch   uint32
	ip     uint64
	args   [6]uint64
	// A later kernel may write more.
	_ [64]byte
}

func (c *call) descriptor() int { return int(int32(c.args[0])) }
func (c *call) address() int64  { return int64(c.args[1]) }
func (c *call) length() int     { return int(int32(c.args[2])) }

// A verdict is what becomes of a call: struct seccomp_notif_resp.
type verdict struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// goOn has the kernel go on with the call.
func goOn() verdict { return verdict{flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE} }

// refuse makes the call fail.
func refuse(errno unix.Errno) verdict { return verdict{errno: -int32(errno)} }

// A replacement is struct seccomp_notif_addfd.
type replacement struct {
	id                             uint64
	flags, from, to, resultingBits uint32
}

// A notifier is the descriptor on which the kernel asks.
type notifier int

// next waits for a call. ok is false if there will be none.
func (n notifier) next(c *call) (ok bool) {
	for {
		// A receive would wait for ever after the last process with the filter has gone, in some
		// kernels. A poll does not.
		poll := []unix.PollFd{{Fd: int32(n), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); err == unix.EINTR {
			continue
		} else if err != nil || poll[0].Revents&unix.POLLIN == 0 {
			return false
		}
		*c = call{} // the kernel wants zeros
		switch n.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(c)) {
		case 0:
			return true
		case unix.EINTR, unix.ENOENT: // the caller was killed
		default:
			return false
		}
	}
}

// valid reports whether the caller still waits for the answer. So what was opened by its id before
// is its own.
func (n notifier) valid(c *call) bool {
	id := c.id
	return n.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

// answer answers a call. The caller may be gone.
func (n notifier) answer(c *call, v verdict) {
	v.id = c.id
	n.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&v))
}

// replace puts a copy of a descriptor of boxd's in the place of one of the caller's.
func (n notifier) replace(c *call, with int, closeOnExec bool) error {
	r := replacement{id: c.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, from: uint32(with),
		to: uint32(c.descriptor())}
	if closeOnExec {
		r.resultingBits = unix.O_CLOEXEC
	}
	if errno := n.control(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&r)); errno != 0 {
		return errno
	}
	return nil
}

func (n notifier) control(request uint, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(n), uintptr(request), uintptr(arg))
	return errno
}
