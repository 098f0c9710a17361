//go:build linux

package main

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestTerminal(t *testing.T) {
	client := startBox(t).guest()
	s := newSession(t, client)
	if err := s.RequestPty("vt220", 33, 111, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	out, err := s.Output("stty size; stty -a; echo $TERM; tty; echo err >&2")
	if err != nil {
		t.Fatal(err)
	}
	text := string(out)
	for _, want := range []string{
		"33 111\r\n", " onlcr", " echoctl", " icanon", "isig ", " echo ", "intr = ^C", "iutf8",
		"vt220\r\n", "/dev/pts/", "err\r\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %q", want, text)
		}
	}

	s = newSession(t, client)
	modes := ssh.TerminalModes{
		ssh.ECHO: 0, ssh.ONLCR: 0, ssh.ICRNL: 0, ssh.ECHOCTL: 0, ssh.VINTR: 1, ssh.VEOF: 255,
		ssh.TTY_OP_ISPEED: 9600, ssh.CS8: 1, ssh.IXANY: 1,
		42: 0, // IUTF8
	}
	if err := s.RequestPty("dumb", 0, 0, modes); err != nil {
		t.Fatal(err)
	}
	out, err = s.Output("stty -a")
	if err != nil {
		t.Fatal(err)
	}
	text = string(out)
	for _, want := range []string{"-echo ", "-onlcr", "-icrnl", "-echoctl", "intr = ^A",
		"eof = <undef>", " ixany", "-iutf8", " cs8"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %q", want, text)
		}
	}
	if strings.Contains(text, "\r") {
		t.Errorf("%q", text)
	}
}

func TestTerminalOutputIsWhole(t *testing.T) {
	client := startBox(t).guest()
	for range 30 {
		s := newSession(t, client)
		if err := s.RequestPty("dumb", 24, 80, ssh.TerminalModes{ssh.ONLCR: 0}); err != nil {
			t.Fatal(err)
		}
		out, err := s.Output("(trap '' HUP; sleep 100) & head -c 50000 /dev/zero; echo end")
		if len(out) != 50004 || err != nil {
			t.Fatalf("%d bytes, %v", len(out), err)
		}
		s.Close()
	}
}

func TestParseModes(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "\x00": 0, "\x01\x00\x00\x00\x03\x00": 1,
		"\x01\x00\x00\x00\x03\x35\x00\x00\x00\x01": 2,
		"\x01\x00\x00\x00\x03\xa0rest":             1, "\x01\x00\x00": -1, "\x01": -1,
	} {
		changes, ok := parseModes([]byte(text))
		if ok != (want >= 0) || ok && len(changes) != want {
			t.Errorf("%q: %v, %v", text, changes, ok)
		}
	}
}
