package sshbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/crypto/ssh"
)

// A person is one with OpenSSH's clients, and with a box's configuration.
type person struct {
	t      testing.TB
	config string
	name   string
	env    []string
}

// personOf skips the test where there are no such clients.
func personOf(t testing.TB, box *DockerSSHBox, programs ...string) *person {
	t.Helper()
	haveClients(t, programs...)
	config, err := box.SSHConfig()
	noError(t, err)
	return &person{t: t, config: config, name: box.ContainerName()}
}

func haveClients(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range append([]string{"docker", "ssh"}, programs...) {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here", program)
		}
	}
}

// command is a client's, with the configuration where {F} stands.
func (p *person) command(ctx context.Context, args ...string) *exec.Cmd {
	for i, arg := range args {
		args[i] = strings.NewReplacer("{F}", p.config, "{NAME}", p.name).Replace(arg)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(append(os.Environ(), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "SSH_AUTH_SOCK=", "DISPLAY=",
		// git has a shell take this apart.
		`GIT_SSH_COMMAND=ssh -F "`+p.config+`"`), p.env...)
	return cmd
}

// does executes it.
func (p *person) does(stdin string, args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	cmd := p.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		p.t.Fatalf("%q: %v, %s%s", args, err, &out, &errs)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must is does, of what has to succeed.
func (p *person) must(stdin string, args ...string) string {
	p.t.Helper()
	out, errs, code := p.does(stdin, args...)
	if code != 0 {
		p.t.Fatalf("%q: status %d, %s%s", args, code, out, errs)
	}
	return out
}

// starts executes it, until the test's end or stop, and gives what it prints, on standard output and error, line by line.
func (p *person) starts(args ...string) (lines <-chan string, stop func()) {
	p.t.Helper()
	cmd := p.command(context.Background(), args...)
	stdin, err := cmd.StdinPipe() // not the test's
	noError(p.t, err)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	noError(p.t, cmd.Start())
	said := make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
		w.Close()
	}()
	go func() {
		defer close(said)
		for s := bufio.NewScanner(r); s.Scan(); {
			said <- s.Text()
		}
	}()
	stop = sync.OnceFunc(func() {
		cmd.Process.Kill()
		<-ended
		stdin.Close()
	})
	p.t.Cleanup(stop)
	return said, stop
}

// next is the next line that contains text.
func next(t testing.TB, lines <-chan string, text string) string {
	t.Helper()
	timeout := time.After(30 * time.Second)
	var said []string
	for {
		select {
		case line, ok := <-lines:
			said = append(said, line)
			if !ok {
				t.Fatalf("it ended before %q; it said\n%s", text, strings.Join(said, "\n"))
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-timeout:
			t.Fatalf("no %q in\n%s", text, strings.Join(said, "\n"))
		}
	}
}

// oddDir has the directories of configurations where their paths need quotes.
func oddDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a b%h%%d")
	noError(t, os.Mkdir(dir, 0o700))
	t.Setenv("TMPDIR", dir)
	return dir
}

func TestSSHConfig(t *testing.T) {
	docker(t)
	haveClients(t)
	dir := oddDir(t)
	box := newBox(t, Config{Image: testImage, User: "user", Network: "none", Env: []string{"FROM_CONFIG=yes"}})
	p := personOf(t, box)
	t.Run("Command", func(t *testing.T) {
		p := personOf(t, box)
		out, errs, code := p.does("", "ssh", "-F", "{F}", "{NAME}", "echo out; echo err >&2; exit 7")
		if out != "out\n" || errs != "err\n" || code != 7 {
			t.Errorf("got %q, %q, %d", out, errs, code)
		}
		if out := p.must("", "ssh", "-F", "{F}", "{NAME}", "id -un; pwd; echo $FROM_CONFIG $SHELL"); out != "user\n/home/user\nyes /bin/bash\n" {
			t.Errorf("got %q", out)
		}
		if _, _, code := p.does("", "ssh", "-F", "{F}", "{NAME}", "kill -TERM $$"); code == 0 {
			t.Errorf("killed: status %d", code)
		}
		if out := p.must("echo $((6*7)); exit\n", "ssh", "-T", "-F", "{F}", "{NAME}"); out != "42\n" {
			t.Errorf("a shell: %q", out)
		}
	})
	t.Run("Input", func(t *testing.T) {
		p := personOf(t, box)
		large := strings.Repeat("0123456789abcde\n", 1<<18) // 4 MiB
		sum := sha256.Sum256([]byte(large))
		if out := p.must(large, "ssh", "-F", "{F}", "{NAME}", "sha256sum"); !strings.HasPrefix(out, hex.EncodeToString(sum[:])) {
			t.Errorf("got %q", out)
		}
		if out := p.must(large, "ssh", "-F", "{F}", "{NAME}", "cat"); out != large {
			t.Errorf("got %d bytes back", len(out))
		}
		if out := p.must(large, "ssh", "-F", "{F}", "{NAME}", "head -c 3"); out != "012" { // it takes but little
			t.Errorf("got %q", out)
		}
	})
	t.Run("Terminal", func(t *testing.T) {
		p := personOf(t, box)
		p.env = []string{"TERM=xterm-256color"}
		if out := p.must("", "ssh", "-tt", "-F", "{F}", "{NAME}", "tty; echo $TERM; test -t 2"); !strings.HasPrefix(out, "/dev/pts/") || !strings.Contains(out, "xterm-256color\r\n") {
			t.Errorf("got %q", out)
		}
		if out := p.must("echo $((6*7)) $0\nexit\n", "ssh", "-tt", "-F", "{F}", "{NAME}"); !strings.Contains(out, "42 -bash") {
			t.Errorf("got %q", out)
		}
	})
	t.Run("scp", func(t *testing.T) {
		p := personOf(t, box, "scp")
		tree, back := someTree(t), t.TempDir()
		for _, legacy := range [][]string{nil, {"-O"}} {
			p.must("", "ssh", "-F", "{F}", "{NAME}", "rm -rf /tmp/scp")
			p.must("", append(append([]string{"scp"}, legacy...), "-q", "-r", "-F", "{F}", tree, "{NAME}:/tmp/scp")...)
			os.RemoveAll(filepath.Join(back, "scp"))
			p.must("", append(append([]string{"scp"}, legacy...), "-q", "-r", "-F", "{F}", "{NAME}:/tmp/scp", back)...)
			if a, b := list(t, tree), list(t, filepath.Join(back, "scp")); a != b {
				t.Errorf("scp %v: went\n%s\ncame\n%s", legacy, a, b)
			}
		}
	})
	t.Run("sftp", func(t *testing.T) {
		p := personOf(t, box, "sftp")
		sftp(t, p, "/tmp/sftp", "/home/user")
	})
	t.Run("rsync", func(t *testing.T) {
		p := personOf(t, box, "rsync")
		if r, err := box.Execute(t.Context(), "command -v rsync"); err != nil || r.ExitCode != 0 {
			t.Skip("no rsync in the test image (make image)")
		}
		tree, back := someTree(t), filepath.Join(t.TempDir(), "back")
		noError(t, os.Symlink("deep", filepath.Join(tree, "link")))
		e := `ssh -F "` + p.config + `"`
		p.must("", "rsync", "-a", "-e", e, tree+"/", "{NAME}:/tmp/rsync/")
		p.must("", "rsync", "-a", "-e", e, "{NAME}:/tmp/rsync/", back+"/")
		if a, b := list(t, tree), list(t, back); a != b {
			t.Errorf("went\n%s\ncame\n%s", a, b)
		}
		noError(t, os.Remove(filepath.Join(tree, "file")))
		p.must("", "rsync", "-a", "--delete", "-z", "-e", e, tree+"/", "{NAME}:/tmp/rsync/")
		does(t, box, "[ ! -e /tmp/rsync/file ] && [ -e /tmp/rsync/deep/large ]", 0, "")
	})
	t.Run("git", func(t *testing.T) {
		p := personOf(t, box, "git")
		does(t, box, "git init -q --bare /tmp/repo.git", 0, "")
		work := t.TempDir()
		p.must("", "git", "clone", "-q", "{NAME}:/tmp/repo.git", work)
		noError(t, os.WriteFile(filepath.Join(work, "file"), bytes.Repeat([]byte("content\n"), 50000), 0o644))
		git := []string{"git", "-C", work, "-c", "user.name=a", "-c", "user.email=a@b"}
		p.must("", append(git, "add", ".")...)
		p.must("", append(git, "commit", "-q", "-m", "first")...)
		p.must("", append(git, "push", "-q", "origin", "HEAD:refs/heads/main")...)
		does(t, box, "git -C /tmp/repo.git log --format=%s main", 0, "first\n")
		again := filepath.Join(t.TempDir(), "again")
		p.must("", "git", "clone", "-q", "-b", "main", "{NAME}:/tmp/repo.git", again)
		if a, b := list(t, filepath.Join(again, "file")), list(t, filepath.Join(work, "file")); a != b {
			t.Errorf("pushed\n%s\ncloned\n%s", b, a)
		}
	})
	t.Run("Forward", func(t *testing.T) { forwards(t, box) })
	t.Run("Refused", func(t *testing.T) { // quietly: what was asked for besides works
		p := personOf(t, box)
		p.env = []string{"DISPLAY=:99", "SSH_AUTH_SOCK=/nonexistent"}
		if out := p.must("", "ssh", "-A", "-X", "-F", "{F}", "{NAME}", "echo agent=$SSH_AUTH_SOCK display=$DISPLAY"); out != "agent= display=\n" {
			t.Errorf("got %q", out)
		}
		_, errs, code := p.does("", "ssh", "-F", "/dev/null", "-i", otherKey(t),
			"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "ProxyCommand="+proxyCommand(t, p.config), "{NAME}", "echo in")
		if code != 255 || !strings.Contains(errs, "Permission denied") {
			t.Errorf("another key: %d, %q", code, errs)
		}
	})
	t.Run("AnotherHostKey", func(t *testing.T) {
		p := personOf(t, box)
		known := filepath.Join(filepath.Dir(p.config), "known_hosts")
		before, err := os.ReadFile(known)
		noError(t, err)
		public, _, err := ed25519.GenerateKey(nil)
		noError(t, err)
		key, err := ssh.NewPublicKey(public)
		noError(t, err)
		noError(t, os.WriteFile(known, []byte(p.name+" "+string(ssh.MarshalAuthorizedKey(key))), 0o600))
		out, errs, code := p.does("", "ssh", "-F", "{F}", "{NAME}", "echo in")
		if code != 255 || out != "" || !strings.Contains(errs, "Host key verification failed") {
			t.Errorf("got %d, %q, %q", code, out, errs)
		}
		noError(t, os.WriteFile(known, nil, 0o600)) // nor is an unknown one taken
		if _, errs, code := p.does("", "ssh", "-F", "{F}", "{NAME}", "echo in"); code != 255 || !strings.Contains(errs, "Host key verification failed") {
			t.Errorf("unknown: %d, %q", code, errs)
		}
		noError(t, os.WriteFile(known, before, 0o600))
		p.must("", "ssh", "-F", "{F}", "{NAME}", "true")
	})
	t.Run("Files", func(t *testing.T) {
		own := filepath.Dir(p.config)
		if filepath.Dir(own) != dir {
			t.Errorf("the configuration is %s", p.config)
		}
		want := "\".\" drwx------\n"
		if got, _, _ := strings.Cut(list(t, own), "\n"); got+"\n" != want {
			t.Errorf("the directory is %q", got)
		}
		for _, name := range []string{"config", "key", "known_hosts"} {
			info, err := os.Stat(filepath.Join(own, name))
			noError(t, err)
			if info.Mode() != 0o600 {
				t.Errorf("%s is %v", name, info.Mode())
			}
		}
		if again, err := box.SSHConfig(); again != p.config || err != nil {
			t.Errorf("asked again: %q, %v", again, err)
		}
	})
	noError(t, box.Close())
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left after Close: %v, %v", left, err)
	}
	if _, err := box.SSHConfig(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// proxyCommand is what a configuration has the client connect with.
func proxyCommand(t *testing.T, config string) string {
	t.Helper()
	text, err := os.ReadFile(config)
	noError(t, err)
	_, rest, _ := strings.Cut(string(text), "ProxyCommand ")
	command, _, _ := strings.Cut(rest, "\n")
	return command
}

// otherKey is one that no box knows.
func otherKey(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v, %s", err, out)
	}
	return file
}

// someTree is a directory with something in it.
func someTree(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	noError(t, os.MkdirAll(filepath.Join(tree, "deep", "er"), 0o755))
	for name, content := range map[string]string{"file": "content", "a name": "", "deep/large": strings.Repeat("0123456789", 300000), "deep/er/script": "#!/bin/sh\n"} {
		noError(t, os.WriteFile(filepath.Join(tree, name), []byte(content), 0o644))
	}
	noError(t, os.Chmod(filepath.Join(tree, "deep/er/script"), 0o755))
	return tree
}

// sftp copies a tree to dir in the box and back; the session begins in home.
func sftp(t *testing.T, p *person, dir, home string) {
	t.Helper()
	tree, back := someTree(t), filepath.Join(t.TempDir(), "back")
	out := p.must(fmt.Sprintf("pwd\nmkdir %s\nput -r %s %s/up\nls -1 %s/up\nrename %s/up %s/renamed\nget -r %s/renamed %s\n", dir, quoted(tree), dir, dir, dir, dir, dir, quoted(back)),
		"sftp", "-q", "-b", "-", "-F", "{F}", "{NAME}")
	if !strings.Contains(out, "Remote working directory: "+home+"\n") || !strings.Contains(out, "/up/a name\n") {
		t.Errorf("it said %q", out)
	}
	if a, b := list(t, tree), list(t, back); a != b {
		t.Errorf("went\n%s\ncame\n%s", a, b)
	}
	out, errs, code := p.does("get /no/such/file\n", "sftp", "-q", "-b", "-", "-F", "{F}", "{NAME}")
	if code == 0 || !strings.Contains(errs, "not found") {
		t.Errorf("no such file: %d, %q, %q", code, out, errs)
	}
}

func quoted(s string) string { return `"` + s + `"` }

// forwards has ssh forward connections both ways.
func forwards(t *testing.T, box *DockerSSHBox) {
	p := personOf(t, box)
	program, err := makeEchoServer()
	noError(t, err)
	file := filepath.Join(t.TempDir(), "server")
	noError(t, os.WriteFile(file, program, 0o755))
	noError(t, box.CopyTo(t.Context(), file, "/tmp/server"))
	j, err := box.Background(t.Context(), "exec /tmp/server /tmp/socket")
	noError(t, err)
	defer j.Kill(context.Background())
	var said string
	waitFor(t, "the server", func() bool {
		data, _, err := j.Logs(t.Context(), 0)
		noError(t, err)
		said = string(data)
		return strings.Contains(said, " .")
	})
	mine := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.Copy(c, c) })
	dir, err := os.MkdirTemp("/tmp", "sandshell-") // a short name, with nothing in it that ssh expands
	noError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	local, socket := freePort(t), filepath.Join(dir, "s")
	lines, stop := p.starts("ssh", "-v", "-N", "-F", "{F}", "-o", "ExitOnForwardFailure=yes", "-L", local+":"+strings.Fields(said)[2], "-L", socket+":/tmp/socket",
		"-R", "0:"+mine.Addr().String(), "{NAME}")
	defer stop()
	remote := strings.Fields(next(t, lines, "Allocated port"))[2] // the last of them to be set up
	echoes := func(conn net.Conn, err error) {
		t.Helper()
		noError(t, err)
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, err = io.WriteString(conn, "there and back")
		noError(t, errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite()))
		if got, err := io.ReadAll(conn); string(got) != "there and back" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	for range 3 {
		echoes(net.Dial("tcp", "127.0.0.1:"+local))
		echoes(net.Dial("unix", socket))
		echoes(box.Dial(t.Context(), "tcp", "127.0.0.1:"+remote))
	}
	stop()
	waitFor(t, "the end of what was forwarded", func() bool {
		conn, err := box.Dial(t.Context(), "tcp", "127.0.0.1:"+remote)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// freePort is one on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestSSHConfigOfTwoBoxes(t *testing.T) {
	docker(t)
	haveClients(t)
	var people []*person
	for i := range 2 {
		box := newBox(t, Config{Image: testImage, Network: "none", Hostname: fmt.Sprint("box", i)})
		people = append(people, personOf(t, box))
	}
	if people[0].config == people[1].config {
		t.Fatal("they share a configuration")
	}
	var wg sync.WaitGroup
	for range 3 {
		for i, p := range people {
			wg.Go(func() {
				if out, errs, code := p.does("", "ssh", "-F", "{F}", "{NAME}", "hostname"); out != fmt.Sprintf("box%d\n", i) || code != 0 {
					t.Errorf("box %d: %q, %q, %d", i, out, errs, code)
				}
			})
		}
	}
	wg.Wait()
	// One's key is not the other's.
	config, err := os.ReadFile(people[0].config)
	noError(t, err)
	swapped := filepath.Join(t.TempDir(), "config")
	noError(t, os.WriteFile(swapped, []byte(strings.ReplaceAll(string(config), filepath.Join(filepath.Dir(people[0].config), "key"),
		filepath.Join(filepath.Dir(people[1].config), "key"))), 0o600))
	if _, errs, code := people[0].does("", "ssh", "-o", "BatchMode=yes", "-F", swapped, "{NAME}", "true"); code != 255 || !strings.Contains(errs, "Permission denied") {
		t.Errorf("the other's key: %d, %q", code, errs)
	}
}

func TestSSHConfigOfBareImages(t *testing.T) {
	haveClients(t, "sftp")
	oddDir(t)
	for image, tmp := range map[string]string{bareImage: "/tmp/sftp", shellImage: "/tmp/sftp"} {
		box := newBox(t, Config{Image: image, User: "12345:54321", ReadOnlyRoot: true, CapDrop: []string{"ALL"}, Network: "none"})
		p := personOf(t, box)
		out, errs, code := p.does("in\n", "ssh", "-F", "{F}", "{NAME}", "read x; echo hi $x; exit 4")
		if out != "hi in\n" || errs != "" || code != 4 {
			t.Errorf("%s: %q, %q, %d", image, out, errs, code)
		}
		if out := p.must("", "ssh", "-tt", "-F", "{F}", "{NAME}", "[ -t 0 ] && echo terminal"); out != "terminal\r\n" {
			t.Errorf("%s: %q", image, out)
		}
		sftp(t, p, tmp, "/")
	}
	// sftp needs no shell, either.
	box := newBox(t, Config{Image: shellImage, Network: "none"})
	p := personOf(t, box)
	p.must("rm /bin/sh\n", "sftp", "-q", "-b", "-", "-F", "{F}", "{NAME}")
	if _, errs, code := p.does("", "ssh", "-F", "{F}", "{NAME}", "echo hi"); code != 127 || !strings.Contains(errs, "no shell") {
		t.Errorf("without a shell: %d, %q", code, errs)
	}
	sftp(t, p, "/sftp", "/")
}

// What a guest runs does not keep a box whose owner has gone.
func TestGuestDoesNotKeepTheBox(t *testing.T) {
	d := docker(t)
	haveClients(t)
	t.Setenv("TMPDIR", t.TempDir()) // who is killed leaves its files
	kill, said := program(t, "guest")
	p := &person{t: t, config: said[1], name: said[2]}
	lines, _ := p.starts("ssh", "-F", "{F}", "{NAME}", "echo begun; while :; do sleep 0.1; done")
	next(t, lines, "begun")
	if out := p.must("", "ssh", "-F", "{F}", "{NAME}", "echo another"); out != "another\n" {
		t.Errorf("got %q", out)
	}
	kill()
	end := time.Now().Add(20 * time.Second)
	for {
		r, err := d.ContainerInspect(t.Context(), said[0], client.ContainerInspectOptions{})
		if err != nil || !r.Container.State.Running {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the box is there 20 s after its owner's end")
		}
		time.Sleep(50 * time.Millisecond)
	}
	for range lines { // and the guest's client has ended
	}
}
