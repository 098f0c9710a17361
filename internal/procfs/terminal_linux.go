package procfs

import (
	"strconv"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"golang.org/x/sys/unix"
)

// A device is a device's number.
type device struct{ major, minor uint32 }

// terminal returns the device of a terminal's number as /proc/PID/stat has it.
func terminal(number int) device {
	return device{uint32(number >> 8 & 0xfff), uint32(number&0xff | number>>12&0xfff00)}
}

// number is the inverse of terminal.
func (d device) number() int { return int(d.minor&0xff | d.major<<8 | d.minor&^0xff<<12) }

// slave reports whether d is a pseudoterminal: UNIX98_PTY_SLAVE_MAJOR and the seven behind it.
func (d device) slave() bool { return d.major >= 136 && d.major <= 143 }

// Devices of the kernel's Documentation/admin-guide/devices.txt.
var (
	ownTerminal = device{5, 0} // /dev/tty
	multiplexer = device{5, 2} // /dev/ptmx, and what opening it gives
)

// withTerminal calls f with the pseudoterminal of that number, if there is one and we may open it.
// Opening does not wait for a carrier, nor does it make the terminal ours.
func withTerminal(number int, f func(fd int)) { withTerminalIn("/dev/pts", number, f) }

// withTerminalIn does so where devpts is in another directory.
func withTerminalIn(dir string, number int, f func(fd int)) {
	d := terminal(number)
	if !d.slave() {
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

// Modes returns the modes of the terminal of that number. What was typed before has passed the line
// discipline then, so that its echo is there.
func Modes(tty int) (m proc.Modes) {
	withTerminal(tty, func(fd int) {
		settle(fd)
		m = modesNow(fd).Modes
	})
	return m
}

// settle passes what was typed through the line discipline: the kernel does that in its own time
// (flush_to_ldisc), unless somebody polls the terminal for input (n_tty_poll).
func settle(fd int) { unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) }

func modesNow(fd int) (m modes) {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return m
	}
	m.Modes = proc.Modes{Known: true, Raw: t.Lflag&unix.ICANON == 0, NoEcho: t.Lflag&unix.ECHO == 0}
	m.timed = m.Raw && t.Cc[unix.VMIN] == 0 && t.Cc[unix.VTIME] > 0
	return m
}

// ResetModes puts the modes of the terminal of that number in order.
func ResetModes(tty int) {
	withTerminal(tty, func(fd int) {
		if m, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			order(m)
			unix.IoctlSetTermios(fd, unix.TCSETS, m)
		}
	})
}

// order changes the modes as stty sane -onlcr -echoctl of the coreutils does.
func order(m *unix.Termios) {
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
