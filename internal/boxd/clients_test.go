//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"
)

// A person uses OpenSSH's programs with a configuration for one box.
type person struct {
	t           testing.TB
	box         *box
	dir, config string
}

// newPerson admits a person to the box. The test is skipped if one of the programs that it needs
// beside ssh is missing.
func newPerson(t testing.TB, programs ...string) *person {
	t.Helper()
	for _, program := range append(programs, "ssh") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no ", program, " here")
		}
	}
	p := &person{t: t, box: startBox(t), dir: t.TempDir()}
	key, text := newKeyFile(t)
	p.box.admit(key)
	p.config = p.write("config", fmt.Sprintf(`Host box
	ProxyCommand %s
	User anyone
	IdentityFile %s
	IdentitiesOnly yes
	UserKnownHostsFile %s
	GlobalKnownHostsFile /dev/null
	StrictHostKeyChecking yes
	BatchMode yes
	LogLevel ERROR
`, strings.Join(p.box.joinCommand(), " "), p.write("key", string(text)), p.knownHosts("known_hosts", p.box.hostKey)))
	return p
}

func (p *person) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *person) knownHosts(name string, key ssh.PublicKey) string {
	p.t.Helper()
	return p.write(name, "box "+string(ssh.MarshalAuthorizedKey(key)))
}

func (p *person) command(name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "GIT_SSH_COMMAND=ssh -F "+p.config,
		"GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C")
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// does runs a program that has to succeed.
func (p *person) does(name string, args ...string) string {
	p.t.Helper()
	var errs bytes.Buffer
	cmd := p.command(name, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		p.t.Errorf("%s %q: %v\n%s%s", name, args, err, out, &errs)
	}
	return string(out)
}

func TestOpenSSH(t *testing.T) {
	p := newPerson(t)
	if got := p.does("ssh", "-F", p.config, "box", "echo out; pwd"); got != "out\n"+p.box.dir+"\n" {
		t.Errorf("%q", got)
	}
	for command, want := range map[string]int{"exit 3": 3, "kill -TERM $$": 255} {
		var exit *exec.ExitError
		if err := p.command("ssh", "-F", p.config, "box", command).Run(); !errors.As(err, &exit) ||
			exit.ExitCode() != want {
			t.Errorf("%s: %v", command, err)
		}
	}
	data := randomBytes(8 << 20)
	cmd := p.command("ssh", "-F", p.config, "-o", "SetEnv=ONE=1", "box", "cat; echo $ONE >&2")
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(data), &errs
	if out, err := cmd.Output(); err != nil || !bytes.Equal(out, data) || errs.String() != "1\n" {
		t.Errorf("%d bytes, %q, %v", len(out), &errs, err)
	}
	wrong := p.knownHosts("wrong", newKey(t).PublicKey())
	out, err := p.command("ssh", "-F", p.config, "-o", "UserKnownHostsFile="+wrong, "box",
		"true").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Host key verification failed") {
		t.Errorf("with a wrong host key: %v\n%s", err, out)
	}
	// Several sessions on one connection.
	control := filepath.Join(p.dir, "control")
	master := p.command("ssh", "-F", p.config, "-M", "-S", control, "-N", "box")
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the master connection is there", func() bool {
		_, err := os.Stat(control)
		return err == nil
	})
	for range 20 {
		if got := p.does("ssh", "-F", p.config, "-S", control, "box",
			"echo shared"); got != "shared\n" {
			t.Errorf("%q", got)
		}
	}
	p.does("ssh", "-F", p.config, "-S", control, "-O", "exit", "box")
	master.Wait()
}

func TestOpenSSHForwards(t *testing.T) {
	p := newPerson(t)
	target := answering(t, "tcp", "127.0.0.1:0").Addr().String()
	socket := filepath.Join(p.dir, "target")
	answering(t, "unix", socket)
	for _, f := range [][2]string{{"-L", target}, {"-R", target}, {"-L", socket}, {"-R", socket}} {
		for _, unix := range []bool{false, true} {
			network, address := "unix", filepath.Join(p.dir, "listening")
			if !unix {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				network, address = "tcp", l.Addr().String()
				l.Close()
			}
			os.Remove(filepath.Join(p.dir, "listening"))
			cmd := p.command("ssh", "-F", p.config, "-o", "ExitOnForwardFailure=yes", f[0],
				address+":"+f[1], "box", "echo up; cat")
			in, _ := cmd.StdinPipe()
			out, _ := cmd.StdoutPipe()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			io.ReadFull(out, make([]byte, 3))
			for range 3 {
				c, err := net.Dial(network, address)
				if err == nil {
					err = asks(c, randomBytes(1<<20))
				}
				if err != nil {
					t.Error(f, address, err)
				}
			}
			in.Close()
			io.Copy(io.Discard, out)
			if err := cmd.Wait(); err != nil {
				t.Error(f, address, err)
			}
		}
	}
}

// tree makes a directory of files, and returns its sum.
func (p *person) tree(name string) (path, sum string) {
	p.t.Helper()
	path = filepath.Join(p.dir, name)
	for file, size := range map[string]int{"big": 10<<20 + 1, "empty": 0, "with a space": 10,
		"sub/ü": 100} {
		file = filepath.Join(path, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, randomBytes(size), 0o640)); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(path, "with a space"), 0o755); err != nil {
		p.t.Fatal(err)
	}
	return path, sumOf(p.t, path)
}

// sumOf returns a checksum of the names, modes and contents in a directory.
func sumOf(t testing.TB, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		fmt.Fprintf(h, "%q %v %x\n", rel, info.Mode(), sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestCopiers(t *testing.T) {
	p := newPerson(t, "scp", "sftp", "rsync")
	from, want := p.tree("from")
	there := func(name string) string { return filepath.Join(p.box.dir, name) }
	check := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			if sumOf(t, path) != want {
				t.Error(path, " is not what it was")
			}
		}
	}
	back := filepath.Join(p.dir, "back")
	for _, flags := range [][]string{{"-s"}, {"-O"}} { // over sftp, and the old way
		args := append([]string{"-q", "-F", p.config, "-p", "-r"}, flags...)
		name := "scp" + flags[0]
		p.does("scp", append(args, from, "box:"+name)...)
		p.does("scp", append(args, "box:"+name, back+name)...)
		check(there(name), back+name)
	}
	cmd := p.command("sftp", "-q", "-F", p.config, "-b", "-", "box")
	cmd.Stdin = strings.NewReader(fmt.Sprintf("pwd\nput -pR %s sftp\nget -pR sftp %ssftp\n", from,
		back) +
		"ls -l sftp\nln -s sftp link\nrename sftp renamed\nmkdir d\nrmdir d\ndf\n")
	if out, err := cmd.CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "Remote working directory: "+p.box.dir) {
		t.Errorf("sftp: %v\n%s", err, out)
	}
	check(there("renamed"), back+"sftp")
	p.does("rsync", "-a", "-e", "ssh -F "+p.config, from+"/", "box:rsync")
	p.does("rsync", "-az", "-e", "ssh -F "+p.config, "box:rsync/", back+"rsync")
	check(there("rsync"), back+"rsync")
	out := p.does("rsync", "-a", "--stats", "-e", "ssh -F "+p.config, from+"/", "box:rsync")
	if !strings.Contains(out, "files transferred: 0") {
		t.Error(out)
	}
}

func TestGit(t *testing.T) {
	p := newPerson(t, "git")
	repository := filepath.Join(p.box.dir, "origin.git")
	p.does("git", "init", "-q", "--bare", "-b", "main", repository)
	p.does("git", "clone", "-q", "box:origin.git", "first")
	first := filepath.Join(p.dir, "first")
	p.write("first/file", string(randomBytes(1<<20)))
	p.does("git", "-C", first, "add", ".")
	p.does("git", "-C", first, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m",
		"one")
	p.does("git", "-C", first, "push", "-q", "origin", "HEAD:main")
	p.does("git", "clone", "-q", "ssh://box"+repository, "second")
	if sumOf(t, filepath.Join(p.dir, "second", ".git", "refs", "heads")) == "" {
		t.Error("nothing was cloned")
	}
	a, _ := os.ReadFile(filepath.Join(p.dir, "first", "file"))
	b, err := os.ReadFile(filepath.Join(p.dir, "second", "file"))
	if err != nil || !bytes.Equal(a, b) {
		t.Error("the file is not the same: ", err)
	}
}

// A typist sits at a terminal with ssh -t.
type typist struct {
	*safeBuffer
	t        testing.TB
	terminal *os.File
	cmd      *exec.Cmd
	ended    chan error
}

func (p *person) sits(args ...string) *typist {
	p.t.Helper()
	cmd := p.command("ssh", append([]string{"-F", p.config, "-t", "box"}, args...)...)
	y := &typist{safeBuffer: new(safeBuffer), t: p.t, cmd: cmd, ended: make(chan error, 1)}
	y.cmd.Env = append(y.cmd.Env, "TERM=xterm-256color")
	var err error
	if y.terminal, err = pty.StartWithSize(y.cmd, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
		p.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(y, y.terminal)
	}()
	go func() {
		err := y.cmd.Wait()
		<-read
		y.ended <- err
	}()
	p.t.Cleanup(func() {
		y.cmd.Process.Kill()
		<-read
		y.terminal.Close()
		if p.t.Failed() {
			p.t.Logf("the screen: %q", y)
		}
	})
	return y
}

// types types, and waits until something shows.
func (y *typist) types(text, shows string) {
	y.t.Helper()
	seen := len(y.String())
	io.WriteString(y.terminal, text)
	waitFor(y.t, fmt.Sprintf("%q shows %q", text, shows), func() bool {
		return strings.Contains(y.String()[seen:], shows)
	})
}

func (y *typist) leaves(status int) {
	y.t.Helper()
	select {
	case err := <-y.ended:
		var exit *exec.ExitError
		if status == 0 && err != nil || status != 0 &&
			(!errors.As(err, &exit) || exit.ExitCode() != status) {
			y.t.Errorf("ssh ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		y.t.Error("ssh does not end")
	}
}

func TestTypist(t *testing.T) {
	const prompt = "\x1b[?2004h" // bash's readline wants pasted text in brackets
	p := newPerson(t, "stty")
	before := p.box.steady()
	y := p.sits()
	y.types("stty -a; echo $TERM\r", "xterm-256color")
	for _, want := range []string{" onlcr", " echoctl", "rows 30; columns 100", "iutf8"} {
		if !strings.Contains(y.String(), want) {
			t.Errorf("there is no %q", want)
		}
	}
	if err := pty.Setsize(y.terminal, &pty.Winsize{Rows: 40, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the new size arrives", func() bool {
		seen := len(y.String())
		y.types("stty size\r", "stty size\r\n")
		waitFor(t, "stty answers", func() bool {
			return strings.Count(y.String()[seen:], "\n") > 1
		})
		return strings.Contains(y.String()[seen:], "40 77")
	})
	// not its echo: what is typed before the shell has the terminal ready for cat shows otherwise
	y.types("echo u''p; cat\r", "up\r\n")
	y.types("line\r", "line\r\nline\r\n")
	y.types("\x03", prompt) // what is typed before, cat reads before it dies
	y.types("echo st=$?\r", "st=130")
	y.types("sleep 1000 & wait\r", "wait\r\n")
	y.types("\x03", prompt)
	y.types("exit 4\r", "")
	y.leaves(4)
	p.box.settled(before)
}

func TestFullScreenPrograms(t *testing.T) {
	p := newPerson(t, "vim", "less")
	file := filepath.Join(p.box.dir, "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("some line\n", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	y := p.sits("less", "file")
	y.types("", "some line")
	y.types("G", "(END)")
	y.types("q", "")
	y.leaves(0)

	y = p.sits("vim", "-u", "NONE", "-n", "file")
	y.types("", "some line")
	y.types("Ohello\x1b:wq\r", "written")
	y.leaves(0)
	if data, err := os.ReadFile(file); err != nil ||
		!strings.HasPrefix(string(data), "hello\nsome line\n") {
		t.Errorf("%.30q, %v", data, err)
	}
}
