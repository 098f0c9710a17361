//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

func silentServer(t testing.TB) *server {
	t.Helper()
	s, err := newServer(options{id: "fuzz"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// FuzzClaimBefore sends data that may come before SSH on a machine. It is SSH, or a claim whose key
// becomes the owner's, or it is refused. Nothing of what follows is lost.
func FuzzClaimBefore(f *testing.F) {
	claim := wire.NewClaim(newKey(f).PublicKey(), false).String()
	for _, seed := range []string{
		"SSH-2.0-x\r\n", "", "SSH", "sandshell authorize ", claim, claim + "SSH-2.0-x\r\n",
		strings.Replace(claim, "ssh-", "command=\"x\" ssh-", 1), "sandshell authorize \n\n",
		"sandshell\n",
	} {
		f.Add([]byte(seed))
	}
	s := silentServer(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		clear(s.owners)
		var answer bytes.Buffer
		in := bufio.NewReaderSize(bytes.NewReader(text), 64<<10)
		err := s.claimBeforeSSH(in, &answer)
		if answer.Len() > 0 && !strings.HasSuffix(answer.String(), "\n") {
			t.Errorf("it answers %q", answer.String())
		}
		if err != nil {
			if len(s.owners) > 0 || answer.Len() > 0 {
				t.Error("it has an owner, and an error: ", err)
			}
			return
		}
		rest, _ := io.ReadAll(in)
		if bytes.HasPrefix(text, []byte("SSH-")) {
			if len(s.owners) > 0 || !bytes.Equal(rest, text) {
				t.Errorf("%q is left of %q", rest, text)
			}
			return
		}
		line, behind, _ := bytes.Cut(text, []byte("\n"))
		claim, err := wire.ParseClaim(string(line))
		if !bytes.Equal(rest, behind) || err != nil {
			t.Errorf("%q is left of %q: %v", rest, text, err)
		}
		hostKey, answers, err := claim.ParseAnswer(answer.String())
		if !answers || (err == nil) != (len(s.owners) > 0) {
			t.Errorf("%q answers %q, and the owners are %v", answer.String(), text, s.owners)
		}
		if err == nil && !bytes.Equal(hostKey.Marshal(), s.hostKey.PublicKey().Marshal()) {
			t.Error("another host key")
		}
	})
}

func FuzzModes(f *testing.F) {
	for _, seed := range []string{
		"", "\x00", "\x01\x00\x00\x00\x03\x35\x00\x00\x00\x00\x48\x00\x00\x00\x01\x00",
		"\x80\x00\x00\x96\x00\x00", "\xa0", "\x0c\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		changes, ok := parseModes(text)
		if !ok && changes != nil || len(changes)*5 > len(text) {
			t.Errorf("%v, %v", changes, ok)
		}
		var modes unix.Termios
		for _, c := range changes {
			c.apply(&modes)
		}
		if modes.Cflag != 0 {
			t.Error("the line's bits are not the client's")
		}
	})
}

// FuzzSessionRequest sends a session requests that start nothing.
func FuzzSessionRequest(f *testing.F) {
	f.Add("env", ssh.Marshal(&struct{ Name, Value string }{"LANG", "C"}))
	f.Add("env", []byte{0, 0, 0, 1})
	f.Add("window-change", ssh.Marshal(&wire.Window{Cols: 80, Rows: 24}))
	f.Add("signal", ssh.Marshal(&struct{ Name string }{"TERM"}))
	f.Add("subsystem", ssh.Marshal(&struct{ Name string }{"x"}))
	f.Add("x11-req", []byte{})
	valid := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	f.Fuzz(func(t *testing.T, kind string, payload []byte) {
		switch kind {
		case "shell", "exec", "pty-req":
			return
		case "subsystem":
			if strings.Contains(string(payload), "sftp") {
				return
			}
		}
		s := &session{c: &conn{s: &server{}}}
		ok := s.request(&ssh.Request{Type: kind, Payload: payload})
		if ok != (kind == "env" && len(s.env) == 1) {
			t.Errorf("%s is granted: %q", kind, s.env)
		}
		for _, kv := range s.env {
			if name, value, ok := strings.Cut(kv, "="); !ok || !valid.MatchString(name) ||
				strings.Contains(value, "\x00") {
				t.Errorf("%q", kv)
			}
		}
	})
}

// FuzzGlobalRequest sends a connection's requests that change nothing outside of boxd.
func FuzzGlobalRequest(f *testing.F) {
	key := newKey(f).PublicKey().Marshal()
	f.Add(wire.GuestRequest, key, true)
	f.Add(wire.GuestRequest, key[:20], true)
	f.Add(wire.HoldRequest, []byte(`["a","b"]`), true)
	f.Add(wire.ListRequest, []byte{}, true)
	f.Add(wire.TreeRequest, []byte(`[1,-1]`), true)
	f.Add(wire.InterruptRequest, []byte(`"a"`), true)
	f.Add(wire.SettleRequest, []byte(`{"ID":"a","Input":7}`), true)
	f.Add(wire.GuestRequest, key, false)
	f.Add("cancel-tcpip-forward", ssh.Marshal(&struct {
		Address string
		Port    uint32
	}{"", 1}), false)
	f.Add("cancel-streamlocal-forward@openssh.com", []byte{0, 0, 0, 2, '/'}, false)
	f.Add("keepalive@openssh.com", []byte{}, false)
	f.Fuzz(func(t *testing.T, kind string, payload []byte, owns bool) {
		switch kind {
		case wire.SignalRequest, wire.ResetModesRequest, "tcpip-forward",
			"streamlocal-forward@openssh.com":
			return // these change this machine's processes or terminals, or listen
		}
		s := &server{guests: map[string]bool{}, programs: map[string]*program{},
			log: slog.New(slog.DiscardHandler)}
		c := &conn{s: s}
		if owns {
			c.owner = &owner{}
		}
		ok, reply := c.request(&ssh.Request{Type: kind, Payload: payload})
		if (ok || len(reply) > 0 || len(s.guests) > 0) && !owns {
			t.Errorf("a guest is granted %s", kind)
		}
		for key := range s.guests {
			if _, err := ssh.ParsePublicKey([]byte(key)); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzProgramRequest sends requests to a program that has written 100 bytes and has been sent 10.
func FuzzProgramRequest(f *testing.F) {
	f.Add(wire.AckRequest, ssh.Marshal(&wire.Ack{Stdout: 50, Stderr: 1 << 63}))
	f.Add(wire.InputEndRequest, ssh.Marshal(&wire.Total{Bytes: 10}))
	f.Add(wire.InputEndRequest, ssh.Marshal(&wire.Total{Bytes: 1<<64 - 1}))
	f.Add("window-change", ssh.Marshal(&wire.Window{Rows: 1, Cols: 1}))
	f.Add("", []byte{})
	f.Fuzz(func(t *testing.T, kind string, payload []byte) {
		if kind == wire.ReleaseRequest {
			return
		}
		a := &attachment{owner: new(owner)}
		p := &program{in: newInput(), out: newOutput(0), err: newOutput(0), owner: a.owner,
			sources: map[*owner]sources{}}
		p.out.write(make([]byte, 100))
		p.in.enqueue(p.sourceOf(a.owner).in, make([]byte, 10), a)
		p.request(a, &ssh.Request{Type: kind, Payload: payload})
		if p.out.acked < 0 || p.out.acked > 100 || p.err.acked != 0 {
			t.Errorf("%d and %d bytes are acknowledged", p.out.acked, p.err.acked)
		}
		if p.out.write(make([]byte, 100)); p.out.total() != 200 {
			t.Error("it has written ", p.out.total())
		}
	})
}

func FuzzReadOpen(f *testing.F) {
	start := &wire.Start{Args: [][]byte{{0xff}, nil}, Env: [][]byte{[]byte("A=b")}, Rows: 24,
		Cols: 80}
	for _, o := range []*wire.Open{{ID: "a"}, {ID: "b", Stdout: -1, Start: start}} {
		var b bytes.Buffer
		if err := wire.WriteOpen(&b, o); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := wire.ReadOpen(bytes.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := wire.WriteOpen(&b, o); err != nil {
			t.Fatal(err)
		}
		again, err := wire.ReadOpen(&b)
		if err != nil {
			t.Fatal(err)
		}
		first, _ := json.Marshal(o)
		second, _ := json.Marshal(again)
		if !bytes.Equal(first, second) {
			t.Errorf("%s and %s", first, second)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, err := range []error{unix.ENOENT, errors.New("x"),
		&fs.PathError{Op: "open", Path: "\xff", Err: unix.EACCES}} {
		f.Add(wire.Fail(err).Encode())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := wire.Decode(text)
		if err == nil {
			t.Fatal("no error")
		}
		_ = err.Error()
		var errno syscall.Errno
		if errors.As(err, &errno) {
			_ = errno.Error()
		}
		wire.Decode(wire.Fail(err).Encode())
	})
}
