//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// newSession opens a session that ends with the test.
func newSession(t testing.TB, client *ssh.Client) *ssh.Session {
	t.Helper()
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// runs runs a command and returns its output.
func runs(t testing.TB, client *ssh.Client, command string) (stdout, stderr string, err error) {
	t.Helper()
	s := newSession(t, client)
	var out, errs bytes.Buffer
	s.Stdout, s.Stderr = &out, &errs
	err = s.Run(command)
	return out.String(), errs.String(), err
}

func TestExec(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	for _, c := range []struct{ command, stdout, stderr, ended string }{
		{"echo out; echo err >&2; exit 3", "out\n", "err\n", "Process exited with status 3"},
		{"printf 'a\\0b'", "a\x00b", "", ""},
		{"pwd", b.dir + "\n", "", ""},
		{"kill -KILL $$", "", "", "Process exited with status 137 from signal KILL"},
		{"kill -TERM $$", "", "", "Process exited with status 143 from signal TERM"},
		{"kill -BUS $$", "", "", "Process exited with status 128 from signal BUS@sandshell"},
		{"ls /proc/self/fd", "0\n1\n2\n3\n", "", ""}, // 3 is the directory itself
		{"ps -o ppid= -p $$ | tr -d ' '", "1\n", "", ""},
		{"no-such-program 2>/dev/null", "", "", "Process exited with status 127"},
		{"echo ${SSH_TTY-none} ${SSH_CONNECTION-none} $(printenv TERM || echo none)",
			"none none none\n", "", ""},
	} {
		stdout, stderr, err := runs(t, client, c.command)
		ended := ""
		if err != nil {
			ended = err.Error()
		}
		if stdout != c.stdout || stderr != c.stderr || ended != c.ended {
			t.Errorf("%s: %q, %q, %v", c.command, stdout, stderr, err)
		}
	}
}

func TestSessionEnvironment(t *testing.T) {
	client := startBox(t).guest()
	s := newSession(t, client)
	for _, kv := range [][2]string{{"LANG", "C.UTF-8"}, {"_a1", "x y\nz"},
		{"PATH", "/usr/bin:/bin"}} {
		if err := s.Setenv(kv[0], kv[1]); err != nil {
			t.Error(err)
		}
	}
	big := strings.Repeat("x", maxEnvSize)
	for _, kv := range [][2]string{{"", "x"}, {"1a", "x"}, {"a=b", "x"}, {"a b", "x"},
		{"a", "\x00"}, {"big", big}} {
		if s.Setenv(kv[0], kv[1]) == nil {
			t.Errorf("%.20q is taken", kv)
		}
	}
	n := 0
	for ; s.Setenv(fmt.Sprint("v", n), "x") == nil; n++ {
	}
	if n != maxEnv-3 {
		t.Errorf("%d variables are taken", n)
	}
	out, err := s.Output(`printf '%s|%s|%s|%s' "$LANG" "$_a1" "$PATH" "$v9"`)
	if want := "C.UTF-8|x y\nz|/usr/bin:/bin|x"; string(out) != want || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

func TestSessionRefuses(t *testing.T) {
	client := startBox(t).guest()
	ch, requests, err := client.OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	go ssh.DiscardRequests(requests)
	ask := func(kind string, payload any) bool {
		t.Helper()
		var text []byte
		if payload != nil {
			text = ssh.Marshal(payload)
		}
		ok, err := ch.SendRequest(kind, true, text)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	type text struct{ Text string }
	for _, kind := range []string{
		"auth-agent-req@openssh.com", "x11-req", "keepalive@openssh.com", "exit-status", "exec",
		"env", "pty-req", "window-change", "signal",
	} {
		if ask(kind, nil) {
			t.Error(kind, " is granted")
		}
	}
	if ask("subsystem", &text{"netconf"}) || ask("signal", &text{"TERM"}) ||
		ask("signal", &text{""}) {
		t.Error("it has no such subsystem, and no program")
	}
	if !ask("exec", &text{"cat"}) {
		t.Fatal("exec is refused")
	}
	if ask("exec", &text{"id"}) || ask("shell", nil) || ask("subsystem", &text{"sftp"}) ||
		ask("env", &struct{ Name, Value string }{"a", "b"}) ||
		ask("pty-req", &ptyRequest{Term: "xterm"}) {
		t.Error("a second program is granted")
	}
	if ask("signal", &text{"NONE"}) || !ask("signal", &text{"TERM"}) {
		t.Error("signals")
	}
	io.Copy(io.Discard, ch)
	ch.Close()
}

// No other program of the box can open the streams of a person's sftp.
func TestSubsystemStreams(t *testing.T) {
	client := startBox(t).guest()
	files, err := sftp.NewClient(client)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	out, errs, err := runs(t, client, `mount -t proc proc /proc
		set -- /proc/[0-9]*/cmdline # before there is a grep
		for p in $(grep -lxz sftp "$@"); do ls -l ${p%/*}/fd; done`)
	if n := strings.Count(out, "-> socket:["); n != 3 || strings.Contains(out, "pipe:[") ||
		errs != "" || err != nil {
		t.Errorf("%d sockets of 3: %s%s%v", n, out, errs, err)
	}
}

func TestSignalReachesTheGroup(t *testing.T) {
	client := startBox(t).guest()
	s := newSession(t, client)
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(`trap 'wait; echo parent; exit 7' USR1
		(trap 'echo child; exit' USR1; echo ready; while :; do sleep 0.01; done) &
		wait`); err != nil {
		t.Fatal(err)
	}
	var ready [6]byte
	if _, err := io.ReadFull(out, ready[:]); err != nil {
		t.Fatal(err)
	}
	if err := s.Signal(ssh.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(out)
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 7 ||
		string(rest) != "child\nparent\n" {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestHalfClose(t *testing.T) {
	client := startBox(t).guest()
	data := make([]byte, 5<<20)
	rand.Read(data)
	s := newSession(t, client)
	s.Stdin = bytes.NewReader(data)
	out, err := s.Output("cat; printf end")
	if err != nil || !bytes.Equal(out, append(data, "end"...)) {
		t.Errorf("%d bytes of %d, %v", len(out), len(data), err)
	}

	// The output ends before the program does.
	s = newSession(t, client)
	in, _ := s.StdinPipe()
	stdout, _ := s.StdoutPipe()
	if err := s.Start("exec >&- 2>&-; read x; exit $x"); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, 9)
	if rest, err := io.ReadAll(stdout); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 9 {
		t.Error(err)
	}
}

func TestUnreadInput(t *testing.T) {
	client := startBox(t).guest()
	for _, command := range []string{"exec <&-; head -c 3000000 /dev/zero",
		"head -c 3000000 /dev/zero"} {
		s := newSession(t, client)
		in, err := s.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		copied := make(chan struct{})
		go func() {
			defer close(copied)
			io.Copy(in, zeros{}) // until the channel is closed
		}()
		out, err := s.Output(command)
		<-copied
		if len(out) != 3000000 || err != nil {
			t.Errorf("%s: %d bytes, %v", command, len(out), err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLargeOutput(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	s := newSession(t, client)
	out, _ := s.StdoutPipe()
	s.Stderr = io.Discard
	if err := s.Start(
		`head -c 104857600 /dev/zero & head -c 104857600 /dev/zero >&2; wait`); err != nil {
		t.Fatal(err)
	}
	// While this session waits for its reader, others go on.
	if got, _, err := runs(t, client, "echo beside"); got != "beside\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	n, err := io.Copy(io.Discard, out)
	if err := errors.Join(err, s.Wait()); n != 100<<20 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.pid))
	var peak int
	for line := range strings.Lines(string(status)) {
		fmt.Sscanf(line, "VmHWM: %d kB", &peak)
	}
	if peak == 0 || peak > 200<<10 { // with the race detector; 20 MB without
		t.Errorf("boxd took %d KiB, %v", peak, err)
	}
}

func TestManySessions(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	runs(t, client, "true")
	before := b.steady()
	errs := make(chan error)
	const n = 100
	for i := range n {
		go func() {
			s, err := client.NewSession()
			if err != nil {
				errs <- err
				return
			}
			defer s.Close()
			out, err := s.Output(fmt.Sprint("echo ", i))
			if err == nil && string(out) != fmt.Sprintln(i) {
				err = fmt.Errorf("%d says %q", i, out)
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	b.settled(before)
}

func TestLoginShell(t *testing.T) {
	b := startBox(t)
	client := b.guest()
	before := b.steady()
	s := newSession(t, client)
	if err := s.RequestPty("xterm", 24, 80, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	screen := new(safeBuffer)
	s.Stdout = screen
	in, _ := s.StdinPipe()
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(in, "echo $((40+2)) $0 ${SHELL##*/}; stty size\n")
	waitFor(t, "the shell answers", func() bool {
		return strings.Contains(screen.String(), "42 -") && screen.has("24 80")()
	})
	if err := s.WindowChange(50, 132); err != nil {
		t.Fatal(err)
	}
	// A request and typed text may overtake each other.
	waitFor(t, "the size changes", func() bool {
		seen := strings.Count(screen.String(), "\n")
		fmt.Fprintln(in, "stty size")
		waitFor(t, "stty answers", func() bool {
			return strings.Count(screen.String(), "\n") >= seen+2
		})
		return screen.has("50 132")()
	})
	fmt.Fprintln(in, "sleep 1000; echo status=$?")
	waitFor(t, "it sleeps", func() bool {
		out, _, _ := runs(t, client, "ps -eo args | grep -c '^sleep 1000'")
		return out == "1\n"
	})
	in.Write([]byte{3})
	waitFor(t, "^C ends it", func() bool {
		return strings.Contains(screen.String(), "status=130") ||
			strings.Contains(screen.String(), "^C")
	})
	fmt.Fprintln(in, "exit 5")
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 5 {
		t.Error(err)
	}
	s.Close()
	b.settled(before)
}

// In TestBareImage, the box has only /proc and /dev.
func TestBareImage(t *testing.T) {
	root := t.TempDir()
	b := startBox(t, rootIn+"="+root)
	client := b.guest()
	for _, terminal := range []bool{false, true} {
		s := newSession(t, client)
		var errs bytes.Buffer
		s.Stderr = &errs
		if terminal {
			if err := s.RequestPty("xterm", 24, 80, nil); err != nil {
				t.Fatal(err)
			}
		}
		err := s.Run("echo hi")
		var exit *ssh.ExitError
		if !errors.As(err, &exit) || exit.ExitStatus() != 127 ||
			!strings.Contains(errs.String(), "the image has no shell") {
			t.Errorf("%q, %v", errs.String(), err)
		}
	}
	// sftp is not tested here, because this binary needs libraries, unlike boxd. sshbox's tests of
	// images test it.
}
