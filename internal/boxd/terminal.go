//go:build linux

package main

import (
	"encoding/binary"
	"os"
	"strings"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/internal/tty"
	"golang.org/x/sys/unix"
)

// A ptyRequest is as in RFC 4254, section 6.2.
type ptyRequest struct {
	Term                      string
	Cols, Rows, Width, Height uint32
	Modes                     string
}

// openTerminal opens the terminal that the client wants. Modes that the client does not name are
// those that a person expects, so what programs.OpenTerminal changes for the engine is set back.
func (s *session) openTerminal(want *ptyRequest) bool {
	if s.begun || s.master != nil || strings.Contains(want.Term, "\x00") {
		return false
	}
	changes, ok := parseModes([]byte(want.Modes))
	if !ok {
		return false
	}
	master, end, err := programs.OpenTerminal(0, 0)
	if err != nil {
		s.c.s.log.Warn("no terminal", "error", err)
		return false
	}
	s.master, s.tty, s.term = master, end, want.Term
	err = tty.ChangeModes(master, func(modes *unix.Termios) {
		modes.Oflag |= unix.ONLCR
		modes.Lflag |= unix.ECHOCTL
		for _, c := range changes {
			c.apply(modes)
		}
	})
	if err == nil {
		err = setWindow(master, wire.Window{Cols: want.Cols, Rows: want.Rows, Width: want.Width,
			Height: want.Height})
	}
	return err == nil
}

func setWindow(master *os.File, w wire.Window) error {
	size := func(n uint32) uint16 { return uint16(min(n, 1<<16-1)) }
	return tty.Control(master, func(fd int) error {
		ws := unix.Winsize{Row: size(w.Rows), Col: size(w.Cols), Xpixel: size(w.Width),
			Ypixel: size(w.Height)}
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &ws)
	})
}

// A modeChange is one entry of the encoded terminal modes of RFC 4254, section 8.
type modeChange struct {
	opcode byte
	value  uint32
}

// parseModes parses encoded modes. A number follows each opcode from 1 to 159. Any other opcode
// ends the list.
func parseModes(text []byte) (changes []modeChange, ok bool) {
	for len(text) > 0 && text[0] != 0 && text[0] < 160 {
		if len(text) < 5 {
			return nil, false
		}
		changes = append(changes, modeChange{text[0], binary.BigEndian.Uint32(text[1:])})
		text = text[5:]
	}
	return changes, true
}

// These are the opcodes of RFC 4254, section 8, and of RFC 8160, without those that Linux lacks
// (VDSUSP, VSTATUS) and those that mean nothing on a pty, which has 8 bits, no parity and no speed.
var (
	controlCharacters = map[byte]int{
		1: unix.VINTR, 2: unix.VQUIT, 3: unix.VERASE, 4: unix.VKILL, 5: unix.VEOF, 6: unix.VEOL,
		7: unix.VEOL2, 8: unix.VSTART, 9: unix.VSTOP,
		10: unix.VSUSP, 12: unix.VREPRINT, 13: unix.VWERASE, 14: unix.VLNEXT, 16: unix.VSWTC,
		18: unix.VDISCARD,
	}
	inputModes = map[byte]uint32{
		30: unix.IGNPAR, 31: unix.PARMRK, 32: unix.INPCK, 33: unix.ISTRIP, 34: unix.INLCR,
		35: unix.IGNCR, 36: unix.ICRNL, 37: unix.IUCLC,
		38: unix.IXON, 39: unix.IXANY, 40: unix.IXOFF, 41: unix.IMAXBEL, 42: unix.IUTF8,
	}
	localModes = map[byte]uint32{
		50: unix.ISIG, 51: unix.ICANON, 52: unix.XCASE, 53: unix.ECHO, 54: unix.ECHOE,
		55: unix.ECHOK, 56: unix.ECHONL, 57: unix.NOFLSH,
		58: unix.TOSTOP, 59: unix.IEXTEN, 60: unix.ECHOCTL, 61: unix.ECHOKE, 62: unix.PENDIN,
	}
	outputModes = map[byte]uint32{70: unix.OPOST, 71: unix.OLCUC, 72: unix.ONLCR, 73: unix.OCRNL,
		74: unix.ONOCR, 75: unix.ONLRET}
)

func (c modeChange) apply(modes *unix.Termios) {
	if i, ok := controlCharacters[c.opcode]; ok {
		modes.Cc[i] = byte(c.value)
		if c.value == 255 { // RFC 4254 uses 255 for no character, and Linux 0
			modes.Cc[i] = 0
		}
		return
	}
	for field, bits := range map[*uint32]map[byte]uint32{&modes.Iflag: inputModes,
		&modes.Lflag: localModes, &modes.Oflag: outputModes} {
		if bit := bits[c.opcode]; c.value != 0 {
			*field |= bit
		} else {
			*field &^= bit
		}
	}
}
