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

	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A person uses OpenSSH's programs with a configuration for one box.
type person struct {
	t           testing.TB
	box         *box
	dir, config string
}

// newPerson makes a person a guest of a new box. It skips the test if ssh or one of the programs is
// missing.
func newPerson(t testing.TB, programs ...string) *person {
	t.Helper()
	for _, program := range append(programs, "ssh") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no ", program, " here: make prepare installs it")
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
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "GIT_SSH_COMMAND=ssh -F "+p.config,
		"GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C")
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// mustRun runs a program that must succeed, and returns its output.
func (p *person) mustRun(name string, args ...string) string {
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
	got := p.mustRun("ssh", "-F", p.config, "box", "echo out; pwd")
	if got != "out\n"+p.box.dir+"\n" {
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
		if got := p.mustRun("ssh", "-F", p.config, "-S", control, "box",
			"echo shared"); got != "shared\n" {
			t.Errorf("%q", got)
		}
	}
	p.mustRun("ssh", "-F", p.config, "-S", control, "-O", "exit", "box")
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

// makeTree makes a directory of files. It returns its path and its checksum.
func (p *person) makeTree(name string) (path, sum string) {
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
	from, want := p.makeTree("from")
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
		p.mustRun("scp", append(args, from, "box:"+name)...)
		p.mustRun("scp", append(args, "box:"+name, back+name)...)
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
	p.mustRun("rsync", "-a", "-e", "ssh -F "+p.config, from+"/", "box:rsync")
	p.mustRun("rsync", "-az", "-e", "ssh -F "+p.config, "box:rsync/", back+"rsync")
	check(there("rsync"), back+"rsync")
	out := p.mustRun("rsync", "-a", "--stats", "-e", "ssh -F "+p.config, from+"/", "box:rsync")
	if !strings.Contains(out, "files transferred: 0") {
		t.Error(out)
	}
}

func TestGit(t *testing.T) {
	p := newPerson(t, "git")
	repository := filepath.Join(p.box.dir, "origin.git")
	p.mustRun("git", "init", "-q", "--bare", "-b", "main", repository)
	p.mustRun("git", "clone", "-q", "box:origin.git", "first")
	first := filepath.Join(p.dir, "first")
	p.write("first/file", string(randomBytes(1<<20)))
	p.mustRun("git", "-C", first, "add", ".")
	p.mustRun("git", "-C", first, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m",
		"one")
	p.mustRun("git", "-C", first, "push", "-q", "origin", "HEAD:main")
	p.mustRun("git", "clone", "-q", "ssh://box"+repository, "second")
	if sumOf(t, filepath.Join(p.dir, "second", ".git", "refs", "heads")) == "" {
		t.Error("nothing was cloned")
	}
	a, _ := os.ReadFile(filepath.Join(p.dir, "first", "file"))
	b, err := os.ReadFile(filepath.Join(p.dir, "second", "file"))
	if err != nil || !bytes.Equal(a, b) {
		t.Error("the file is not the same: ", err)
	}
}
