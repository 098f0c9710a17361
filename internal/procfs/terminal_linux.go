package procfs

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// A device is the number of a device file.
type device struct{ major, minor uint32 }

// ttyDevice returns the device of a terminal, given its number in /proc/PID/stat.
func ttyDevice(number int) device {
	return device{uint32(number >> 8 & 0xfff), uint32(number&0xff | number>>12&0xfff00)}
}

// ttyNumber returns the number that /proc/PID/stat has for the terminal d.
func (d device) ttyNumber() int { return int(d.minor&0xff | d.major<<8 | d.minor&^0xff<<12) }

// isSlave reports whether d is a pseudoterminal. The kernel has eight major numbers for these, from
// UNIX98_PTY_SLAVE_MAJOR on.
func (d device) isSlave() bool { return d.major >= 136 && d.major <= 143 }

// Source: Documentation/admin-guide/devices.txt of the kernel.
var (
	devTTY  = device{5, 0} // /dev/tty
	devPtmx = device{5, 2} // /dev/ptmx, and each master
)

// withTerminal calls f with a descriptor of the pseudoterminal with that number. It does nothing if
// there is no such terminal, or if this process may not open it. Opening the terminal does not wait
// for a carrier, and does not make it this process's controlling terminal.
func withTerminal(number int, f func(fd int)) { withTerminalIn("/dev/pts", number, f) }

// withTerminalIn is withTerminal for a devpts that is mounted on dir.
func withTerminalIn(dir string, number int, f func(fd int)) {
	d := ttyDevice(number)
	if !d.isSlave() {
		return
	}
	path := dir + "/" + strconv.FormatUint(uint64(d.minor), 10)
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return
	}
	defer unix.Close(fd)
	f(fd)
}

// Modes returns the modes of the terminal with that number. When it returns, what was typed before
// has passed the line discipline, so its echo has been written.
func Modes(tty int) (m proc.Modes) {
	withTerminal(tty, func(fd int) {
		processTyped(fd)
		m = readModes(fd).Modes
	})
	return m
}

// processTyped makes the kernel pass what was typed through the line discipline at once. The kernel
// does that later by itself (flush_to_ldisc), but does it at once when a program polls the terminal
// for input (n_tty_poll).
func processTyped(fd int) { unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) }

func readModes(fd int) (m modes) {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return m
	}
	m.Modes = proc.Modes{Known: true, Raw: t.Lflag&unix.ICANON == 0, NoEcho: t.Lflag&unix.ECHO == 0}
	m.timed = m.Raw && t.Cc[unix.VMIN] == 0 && t.Cc[unix.VTIME] > 0
	return m
}

// ResetModes sets the modes of the terminal with that number as stty sane -onlcr -echoctl does.
func ResetModes(tty int) {
	withTerminal(tty, func(fd int) {
		if m, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			makeSane(m)
			unix.IoctlSetTermios(fd, unix.TCSETS, m)
		}
	})
}

// makeSane changes the modes as stty sane -onlcr -echoctl of the GNU coreutils does.
func makeSane(m *unix.Termios) {
	set := func(flags *uint32, on, off uint32) { *flags = *flags&^off | on }
	set(&m.Cflag, unix.CREAD, 0)
	set(&m.Iflag, unix.BRKINT|unix.ICRNL|unix.IMAXBEL,
		unix.IGNBRK|unix.INLCR|unix.IGNCR|unix.IXOFF|unix.IUCLC|unix.IXANY|unix.IUTF8)
	set(&m.Oflag, unix.OPOST,
		unix.ONLCR|unix.OLCUC|unix.OCRNL|unix.ONOCR|unix.ONLRET|unix.OFILL|unix.OFDEL|
			unix.NLDLY|unix.CRDLY|unix.TABDLY|unix.BSDLY|unix.VTDLY|unix.FFDLY)
	set(&m.Lflag, unix.ISIG|unix.ICANON|unix.IEXTEN|unix.ECHO|unix.ECHOE|unix.ECHOK|unix.ECHOKE,
		unix.ECHOCTL|unix.ECHONL|unix.NOFLSH|unix.XCASE|unix.TOSTOP|
			unix.ECHOPRT|unix.FLUSHO|unix.EXTPROC)
	control := func(key byte) byte { return key &^ 0x60 }
	for i, c := range map[int]byte{
		unix.VINTR: control('C'), unix.VQUIT: control('\\'), unix.VERASE: 0x7f,
		unix.VKILL: control('U'), unix.VEOF: control('D'),
		unix.VEOL: 0, unix.VEOL2: 0, unix.VSWTC: 0, unix.VSTART: control('Q'),
		unix.VSTOP: control('S'), unix.VSUSP: control('Z'),
		unix.VREPRINT: control('R'), unix.VWERASE: control('W'), unix.VLNEXT: control('V'),
		unix.VDISCARD: control('O'),
		unix.VMIN:     1, unix.VTIME: 0,
	} {
		m.Cc[i] = c
	}
}
