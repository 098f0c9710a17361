//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/tty"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// A session is a session channel of plain SSH, as people's own clients open it. Its program belongs
// to the channel: when the channel is closed, the terminal hangs up, or the pipes are closed. Only
// the goroutine that handles the channel's requests uses the fields.
type session struct {
	c       *conn
	ch      ssh.Channel
	env     []string
	envSize int
	term    string
	master  *os.File // of the terminal that was asked for
	tty     *os.File // the program's end of it, until the program has it
	outputs []*os.File
	child   *child // once it runs
	begun   bool   // a program was requested; a session has at most one
}

// The greatest number and size of variables that a client may set.
const (
	maxEnv     = 256
	maxEnvSize = 64 << 10
)

// serveSession serves a session channel to its end.
func (c *conn) serveSession(newChannel ssh.NewChannel) {
	ch, requests, err := newChannel.Accept()
	if err != nil {
		return
	}
	s := &session{c: c, ch: ch}
	for r := range requests {
		ok := s.request(r)
		if r.WantReply {
			r.Reply(ok, nil)
		}
	}
	s.hangUp()
}

// hangUp closes the terminal, or the pipes to which the program writes. If the standard input is a
// pipe, the program still gets what the client has sent, and then the end.
func (s *session) hangUp() {
	for _, f := range append(s.outputs, s.tty, s.master) {
		if f != nil {
			f.Close()
		}
	}
}

// request handles one request. It refuses unknown requests: agents, X11, and keepalives. The sender
// of a keepalive takes any answer.
func (s *session) request(r *ssh.Request) bool {
	switch r.Type {
	case "env":
		var kv struct{ Name, Value string }
		return ssh.Unmarshal(r.Payload, &kv) == nil && s.setenv(kv.Name, kv.Value)
	case "pty-req":
		var want ptyRequest
		return ssh.Unmarshal(r.Payload, &want) == nil && s.openTerminal(&want)
	case "window-change":
		var w wire.Window
		return ssh.Unmarshal(r.Payload, &w) == nil && s.master != nil &&
			setWindow(s.master, w) == nil
	case "signal":
		var signal struct{ Name string }
		return ssh.Unmarshal(r.Payload, &signal) == nil && s.signal(signal.Name)
	case "shell":
		return s.begin(r, func() { s.runShell() })
	case "exec":
		var exec struct{ Command string }
		return ssh.Unmarshal(r.Payload, &exec) == nil && s.begin(r, func() {
			s.runShell("-c", exec.Command)
		})
	case "subsystem":
		var subsystem struct{ Name string }
		return ssh.Unmarshal(r.Payload, &subsystem) == nil && subsystem.Name == "sftp" &&
			s.begin(r, s.runFiles)
	}
	return false
}

// begin answers a request for a program, and then starts the program. Some clients take output that
// comes before the answer for an error.
func (s *session) begin(r *ssh.Request, start func()) bool {
	if s.begun {
		return false
	}
	s.begun = true
	if r.WantReply {
		r.Reply(true, nil)
		r.WantReply = false
	}
	start()
	return true
}

func (s *session) setenv(name, value string) bool {
	size := len(name) + len(value)
	if s.begun || !validName(name) || strings.Contains(value, "\x00") || len(s.env) >= maxEnv ||
		s.envSize+size > maxEnvSize {
		return false
	}
	s.env = append(s.env, name+"="+value)
	s.envSize += size
	return true
}

// validName reports whether a shell can have a variable of that name.
func validName(name string) bool {
	for i, b := range []byte(name) {
		switch {
		case b == '_', 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z':
		case '0' <= b && b <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != ""
}

// signal sends a signal to the program's process group. name is one of RFC 4254's, or that of
// another signal of this system, without SIG.
func (s *session) signal(name string) bool {
	signal := unix.SignalNum("SIG" + name)
	return signal != 0 && s.child != nil && s.c.s.children.signal(s.child, signal) == nil
}

// Shells return these statuses if a program does not exist, and if it cannot be started.
const (
	statusNotFound   = 127
	statusNotStarted = 126
)

// runShell starts the user's shell with these arguments, or as a login shell if there are none.
func (s *session) runShell(args ...string) {
	p := s.findShell(args)
	if p == nil {
		s.fail(statusNotFound, "the image has no shell: there is neither /bin/sh nor bash. sftp "+
			"works")
		return
	}
	if err := s.start(p); err != nil {
		s.fail(statusNotStarted, fmt.Sprintf("%s: %v", p.path, err))
	}
}

// findShell prepares the account's shell. If it is missing, or only keeps people out (nologin,
// false), findShell prepares /bin/sh or bash.
func (s *session) findShell(args []string) *prepared {
	for _, shell := range []string{ourAccount().Shell, "/bin/sh", "bash"} {
		name := path.Base(shell)
		if shell == "" || name == "nologin" || name == "false" {
			continue
		}
		p, err := s.c.s.prepare(request{args: append([]string{shell}, args...), env: s.env})
		if err != nil || unix.Access(p.path, unix.X_OK) != nil {
			continue
		}
		p.args = slices.Clone(p.args)
		p.args[0] = name
		if len(args) == 0 {
			p.args[0] = "-" + name // by this name a shell reads the user's profile
		}
		p.env = append(p.env, "SHELL="+p.path)
		if s.term != "" {
			p.env = append(p.env, "TERM="+s.term)
		}
		p.env = lastValues(p.env)
		return p
	}
	return nil
}

func (s *session) fail(status uint32, why string) {
	fmt.Fprintf(s.ch.Stderr(), "boxd: %s\r\n", why)
	s.exit(status)
}

// start starts the program.
func (s *session) start(p *prepared) error {
	terminal := s.tty != nil
	ours, theirs := [3]*os.File{s.master}, [3]*os.File{s.tty, s.tty, s.tty}
	s.tty = nil
	if terminal {
		s.outputs = []*os.File{s.master}
	} else {
		var err error
		if ours, theirs, err = p.openStreams(); err != nil {
			return err
		}
		s.outputs = ours[1:]
	}
	in := ours[0]
	child, err := s.c.s.children.start(p, theirs, terminal)
	closeAll(theirs)
	if err != nil {
		in.Close()
		return err
	}
	s.child = child
	go s.copyInput(in)
	go s.copyOutput(child)
	return nil
}

// copyInput passes the client's input on to the program. If the program no longer reads, copyInput
// drops the rest and tells the client in OpenSSH's way. Otherwise a client that waits until all of
// its input has been read would wait for ever.
func (s *session) copyInput(in *os.File) {
	_, err := io.Copy(in, s.ch)
	if in != s.master { // the end of a terminal's input is a character
		in.Close()
	}
	if err != nil {
		s.ch.SendRequest("eow@openssh.com", false, nil)
		io.Copy(io.Discard, s.ch)
	}
}

// copyOutput sends the program's output, and then how the program ended. Like sshd, it waits for
// the end of the output, which children of the program may hold open after the program's end. On a
// terminal it does not wait for them: the terminal hangs up when its first program ends.
func (s *session) copyOutput(child *child) {
	var outputs sync.WaitGroup
	for i, f := range s.outputs {
		w := io.Writer(s.ch)
		if i == 1 {
			w = s.ch.Stderr()
		}
		outputs.Go(func() {
			defer f.Close() // when the client reads no more, the program gets SIGPIPE
			if _, err := io.Copy(w, f); errors.Is(err, os.ErrDeadlineExceeded) {
				drainTerminal(w, f)
			}
		})
	}
	if s.master != nil {
		<-child.ended
		s.master.SetReadDeadline(time.Now())
	}
	outputs.Wait()
	<-child.ended
	if status := child.status; status.Signaled() {
		s.sendEnd("exit-signal", &struct {
			Signal       string
			Core         bool
			Message, Tag string
		}{signalName(status.Signal()), status.CoreDump(), "", ""})
		return
	}
	s.exit(uint32(child.status.ExitStatus()))
}

// drainTerminal sends what is left in a terminal when its first program has ended. It sends at most
// as much as a terminal holds, because other programs may go on writing without end.
func drainTerminal(w io.Writer, master *os.File) {
	buf := make([]byte, 128<<10)
	for left := len(buf); left > 0; {
		var n int
		if tty.Control(master, func(fd int) (err error) {
			n, err = unix.Read(fd, buf[:left])
			return err
		}) != nil || n <= 0 {
			return
		}
		left -= n
		if _, err := w.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (s *session) exit(status uint32) { s.sendEnd("exit-status", &struct{ Status uint32 }{status}) }

// sendEnd tells the client how the program ended, and closes the channel. All output has been sent.
// The end of the output comes after kind, because a client that has sent all of its input closes
// the channel at that end.
func (s *session) sendEnd(kind string, how any) {
	s.ch.SendRequest(kind, false, ssh.Marshal(how))
	s.ch.CloseWrite()
	s.ch.Close()
}

// standardSignals are the names of RFC 4254, section 6.10.
var standardSignals = []string{"ABRT", "ALRM", "FPE", "HUP", "ILL", "INT", "KILL", "PIPE", "QUIT",
	"SEGV", "TERM", "USR1", "USR2"}

// signalName returns the name of a signal in the form of RFC 4254. A name that is not in the RFC
// ends in "@" and the domain that has defined it.
func signalName(sig syscall.Signal) string {
	name := strings.TrimPrefix(unix.SignalName(sig), "SIG")
	if name == "" {
		name = itoa(int(sig))
	}
	if !slices.Contains(standardSignals, name) {
		name += "@sandshell"
	}
	return name
}
