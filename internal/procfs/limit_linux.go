package procfs

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// longLimit is the shortest time limit that counts as none, because nobody waits that long.
const longLimit = 12 * time.Hour

// A limit is the time limit of a call.
type limit struct {
	milliseconds int32  // if address is 0; negative: no limit
	address      uint64 // of a timespec or timeval
	absolute     bool   // a time of that clock
	clock        int32
}

var noLimit = limit{milliseconds: -1}

// limitOf returns the time limit of a call of that kind.
func limitOf(k callKind, call *sysCall) limit {
	at := func(address uint64) limit { return limit{milliseconds: -1, address: address} }
	until := func(address uint64, clock int32) limit {
		return limit{milliseconds: -1, address: address, absolute: true, clock: clock}
	}
	a := &call.Args
	switch k {
	case pollCall:
		return limit{milliseconds: int32(a[2])}
	case epollCall:
		return limit{milliseconds: int32(a[3])}
	case ppollCall, timedSignalCall:
		return at(a[2])
	case selectCall:
		return at(a[4])
	case epollPwait2Call:
		return at(a[3])
	case sleepCall:
		return at(a[0])
	case clockSleepCall:
		if a[1]&1 != 0 { // TIMER_ABSTIME
			return until(a[2], int32(a[0]))
		}
		return at(a[2])
	case futexCall:
		return futexLimit(a)
	case futexWaitCall:
		return until(a[4], int32(a[5]))
	case futexWaitvCall:
		return until(a[3], int32(a[4]))
	}
	return noLimit
}

// The operations of a futex that wait. Source: include/uapi/linux/futex.h of the kernel.
const (
	futexWait          = 0 // the limit is relative; it is absolute for all others
	futexLockPI        = 6
	futexWaitBitset    = 9
	futexWaitRequeuePI = 11
	futexLockPI2       = 13

	futexPrivate  = 128
	futexRealtime = 256
)

func futexOperation(a *[6]uint64) uint64 { return a[1] &^ (futexPrivate | futexRealtime) }

func futexLimit(a *[6]uint64) limit {
	l := limit{milliseconds: -1, address: a[3], absolute: true, clock: unix.CLOCK_MONOTONIC}
	switch futexOperation(a) {
	case futexWait:
		l.absolute = false
	case futexLockPI:
		l.clock = unix.CLOCK_REALTIME
	case futexWaitBitset, futexWaitRequeuePI, futexLockPI2:
		if a[1]&futexRealtime != 0 {
			l.clock = unix.CLOCK_REALTIME
		}
	default:
		return noLimit
	}
	return l
}

// passes reports whether the limit ends the call by itself, before longLimit has passed. thread is
// the thread's directory, and m the memory of its process. wide says that the numbers of the limit
// have 64 bits.
func (l limit) passes(m *memory, thread string, wide bool) bool {
	if l.address == 0 {
		return l.milliseconds >= 0 && time.Duration(l.milliseconds)*time.Millisecond < longLimit
	}
	// The first number is the seconds, in a timespec and in a timeval. The second says little.
	var b [8]byte
	seconds := int64(0)
	if wide {
		if !m.read(thread, l.address, b[:]) {
			return true
		}
		seconds = int64(binary.NativeEndian.Uint64(b[:]))
	} else {
		if !m.read(thread, l.address, b[:4]) {
			return true
		}
		seconds = int64(int32(binary.NativeEndian.Uint32(b[:])))
	}
	if l.absolute {
		var now unix.Timespec
		if !isWallClock(l.clock) || unix.ClockGettime(l.clock, &now) != nil {
			return true
		}
		seconds -= int64(now.Sec)
	}
	return seconds < int64(longLimit/time.Second)
}

// isWallClock reports whether the clock shows the same time to all processes. Some clocks show the
// processor time of the process that asks.
func isWallClock(clock int32) bool {
	switch clock {
	case unix.CLOCK_REALTIME, unix.CLOCK_MONOTONIC, unix.CLOCK_BOOTTIME, unix.CLOCK_REALTIME_ALARM,
		unix.CLOCK_BOOTTIME_ALARM, unix.CLOCK_TAI:
		return true
	}
	return false
}

// hasWideTimes reports whether the numbers of the call's time limit have 64 bits. Those of a 32-bit
// program have 32, unless it is one of the calls that Linux 5.1 added for times after 2038.
func hasWideTimes(call *sysCall, is64Bit bool) bool {
	return is64Bit || call.Number >= 403 && call.Number < 512
}
