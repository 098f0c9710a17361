package sshbox

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"golang.org/x/crypto/ssh"
)

// oddTempDir makes and sets a TMPDIR whose path needs quotes in configurations.
func oddTempDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a b%h%%d")
	noError(t, os.Mkdir(dir, 0o700))
	t.Setenv("TMPDIR", dir)
	return dir
}

// boxdClients is why make test uses few clients with a container.
const boxdClients = "boxd's own tests run this client every day; ssh and sftp have the " +
	"configuration"

// TestSSHConfig uses a box by ssh, scp, sftp, rsync and git.
func TestSSHConfig(t *testing.T) {
	testEngine(t)
	needClients(t)
	dir := oddTempDir(t)
	box := newBox(t, Config{Image: testImage, User: "user", Network: "none",
		Env: []string{"FROM_CONFIG=yes"}})
	p := newSSHClient(t, box)
	t.Run("Command", func(t *testing.T) { commandsBySSH(t, box) })
	t.Run("Input", func(t *testing.T) { inputBySSH(t, box) })
	t.Run("Terminal", func(t *testing.T) { terminalBySSH(t, box) })
	t.Run("scp", func(t *testing.T) {
		testenv.NeedsAll(t, boxdClients)
		p := newSSHClient(t, box, "scp")
		tree, back := writeTree(t), t.TempDir()
		for _, legacy := range [][]string{nil, {"-O"}} {
			p.must("", "ssh", "-F", "{F}", "{NAME}", "rm -rf /tmp/scp")
			p.must("", append(append([]string{"scp"}, legacy...), "-q", "-r", "-F", "{F}", tree,
				"{NAME}:/tmp/scp")...)
			os.RemoveAll(filepath.Join(back, "scp"))
			p.must("", append(append([]string{"scp"}, legacy...), "-q", "-r", "-F", "{F}",
				"{NAME}:/tmp/scp", back)...)
			if a, b := describeTree(t, tree), describeTree(t, filepath.Join(back, "scp")); a != b {
				t.Errorf("scp %v: sent\n%s\ngot back\n%s", legacy, a, b)
			}
		}
	})
	t.Run("sftp", func(t *testing.T) {
		p := newSSHClient(t, box, "sftp")
		sftpTree(t, p, "/tmp/sftp", "/home/user")
	})
	t.Run("rsync", func(t *testing.T) {
		testenv.NeedsAll(t, boxdClients)
		p := newSSHClient(t, box, "rsync")
		if r, err := box.Execute(t.Context(), "command -v rsync"); err != nil || r.ExitCode != 0 {
			t.Skip("no rsync in the test image (make image)")
		}
		tree, back := writeTree(t), filepath.Join(t.TempDir(), "back")
		noError(t, os.Symlink("deep", filepath.Join(tree, "link")))
		e := `ssh -F "` + p.config + `"`
		p.must("", "rsync", "-a", "-e", e, tree+"/", "{NAME}:/tmp/rsync/")
		p.must("", "rsync", "-a", "-e", e, "{NAME}:/tmp/rsync/", back+"/")
		if a, b := describeTree(t, tree), describeTree(t, back); a != b {
			t.Errorf("sent\n%s\ngot back\n%s", a, b)
		}
		noError(t, os.Remove(filepath.Join(tree, "file")))
		p.must("", "rsync", "-a", "--delete", "-z", "-e", e, tree+"/", "{NAME}:/tmp/rsync/")
		expect(t, box, "[ ! -e /tmp/rsync/file ] && [ -e /tmp/rsync/deep/large ]", 0, "")
	})
	t.Run("git", func(t *testing.T) {
		testenv.NeedsAll(t, boxdClients)
		gitBySSH(t, box)
	})
	t.Run("Forward", func(t *testing.T) {
		testenv.NeedsAll(t, boxdClients)
		forwardBySSH(t, box)
	})
	// boxd refuses to forward X11 and the agent, and ssh goes on without them.
	t.Run("Refused", func(t *testing.T) {
		p := newSSHClient(t, box)
		p.env = []string{"DISPLAY=:99", "SSH_AUTH_SOCK=/nonexistent"}
		if out := p.must("", "ssh", "-A", "-X", "-F", "{F}", "{NAME}",
			"echo agent=$SSH_AUTH_SOCK display=$DISPLAY"); out != "agent= display=\n" {
			t.Errorf("got %q", out)
		}
		_, errs, code := p.run("", "ssh", "-F", "/dev/null", "-i", unknownKey(t),
			"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
			"-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
			"-o", "ProxyCommand="+proxyCommand(t, p.config), "{NAME}", "echo in")
		if code != 255 || !strings.Contains(errs, "Permission denied") {
			t.Errorf("login with another key: %d, %q", code, errs)
		}
	})
	t.Run("AnotherHostKey", func(t *testing.T) { anotherHostKey(t, box) })
	t.Run("Files", func(t *testing.T) {
		own := filepath.Dir(p.config)
		if filepath.Dir(own) != dir {
			t.Errorf("the configuration is %s, not below %s", p.config, dir)
		}
		want := "\".\" drwx------\n"
		if got, _, _ := strings.Cut(describeTree(t, own), "\n"); got+"\n" != want {
			t.Errorf("the directory is %q", got)
		}
		for _, name := range []string{"config", "key", "known_hosts"} {
			info, err := os.Stat(filepath.Join(own, name))
			noError(t, err)
			if info.Mode() != 0o600 {
				t.Errorf("%s is %v", name, info.Mode())
			}
		}
		if again, err := box.SSHConfig(t.Context()); again != p.config || err != nil {
			t.Errorf("the second SSHConfig: %q, %v", again, err)
		}
	})
	noError(t, box.Close())
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("Close has left %v, %v", left, err)
	}
	if _, err := box.SSHConfig(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("SSHConfig after Close: %v", err)
	}
}

// commandsBySSH executes commands by ssh.
func commandsBySSH(t *testing.T, box *DockerSSHBox) {
	p := newSSHClient(t, box)
	out, errs, code := p.run("", "ssh", "-F", "{F}", "{NAME}", "echo out; echo err >&2; exit 7")
	if out != "out\n" || errs != "err\n" || code != 7 {
		t.Errorf("got %q, %q, %d", out, errs, code)
	}
	if out := p.must("", "ssh", "-F", "{F}", "{NAME}",
		"id -un; pwd; echo $FROM_CONFIG $SHELL"); out != "user\n/home/user\nyes /bin/bash\n" {
		t.Errorf("got %q", out)
	}
	if _, _, code := p.run("", "ssh", "-F", "{F}", "{NAME}", "kill -TERM $$"); code == 0 {
		t.Errorf("killed: status %d", code)
	}
	if out := p.must("echo $((6*7)); exit\n", "ssh", "-T", "-F", "{F}", "{NAME}"); out != "42\n" {
		t.Errorf("a shell: %q", out)
	}
}

// terminalBySSH executes commands on a terminal by ssh.
func terminalBySSH(t *testing.T, box *DockerSSHBox) {
	p := newSSHClient(t, box)
	p.env = []string{"TERM=xterm-256color"}
	if out := p.must("", "ssh", "-tt", "-F", "{F}", "{NAME}",
		"tty; echo $TERM; test -t 2"); !strings.HasPrefix(out, "/dev/pts/") ||
		!strings.Contains(out, "xterm-256color\r\n") {
		t.Errorf("got %q", out)
	}
	if out := p.must("echo $((6*7)) $0\nexit\n", "ssh", "-tt", "-F", "{F}",
		"{NAME}"); !strings.Contains(out, "42 -bash") {
		t.Errorf("got %q", out)
	}
}

// inputBySSH gives commands input by ssh.
func inputBySSH(t *testing.T, box *DockerSSHBox) {
	p := newSSHClient(t, box)
	large := strings.Repeat("0123456789abcde\n", 1<<18) // 4 MiB
	sum := sha256.Sum256([]byte(large))
	if out := p.must(large, "ssh", "-F", "{F}", "{NAME}", "sha256sum"); !strings.HasPrefix(out,
		hex.EncodeToString(sum[:])) {
		t.Errorf("got %q", out)
	}
	if out := p.must(large, "ssh", "-F", "{F}", "{NAME}", "cat"); out != large {
		t.Errorf("got %d bytes back", len(out))
	}
	// The command ends before it has read all of its input.
	if out := p.must(large, "ssh", "-F", "{F}", "{NAME}", "head -c 3"); out != "012" {
		t.Errorf("got %q", out)
	}
}

// gitBySSH clones a repository of the box, and pushes to it.
func gitBySSH(t *testing.T, box *DockerSSHBox) {
	p := newSSHClient(t, box, "git")
	expect(t, box, "git init -q --bare /tmp/repo.git", 0, "")
	work := t.TempDir()
	p.must("", "git", "clone", "-q", "{NAME}:/tmp/repo.git", work)
	noError(t, os.WriteFile(filepath.Join(work, "file"), bytes.Repeat([]byte("content\n"), 50000),
		0o644))
	git := []string{"git", "-C", work, "-c", "user.name=a", "-c", "user.email=a@b"}
	p.must("", append(git, "add", ".")...)
	p.must("", append(git, "commit", "-q", "-m", "first")...)
	p.must("", append(git, "push", "-q", "origin", "HEAD:refs/heads/main")...)
	expect(t, box, "git -C /tmp/repo.git log --format=%s main", 0, "first\n")
	again := filepath.Join(t.TempDir(), "again")
	p.must("", "git", "clone", "-q", "-b", "main", "{NAME}:/tmp/repo.git", again)
	pushed := describeTree(t, filepath.Join(work, "file"))
	cloned := describeTree(t, filepath.Join(again, "file"))
	if pushed != cloned {
		t.Errorf("pushed\n%s\ncloned\n%s", pushed, cloned)
	}
}

// anotherHostKey shows that ssh refuses a box whose host key is not the one of its configuration.
func anotherHostKey(t *testing.T, box *DockerSSHBox) {
	p := newSSHClient(t, box)
	known := filepath.Join(filepath.Dir(p.config), "known_hosts")
	before, err := os.ReadFile(known)
	noError(t, err)
	public, _, err := ed25519.GenerateKey(nil)
	noError(t, err)
	key, err := ssh.NewPublicKey(public)
	noError(t, err)
	noError(t, os.WriteFile(known, []byte(p.name+" "+string(ssh.MarshalAuthorizedKey(key))), 0o600))
	out, errs, code := p.run("", "ssh", "-F", "{F}", "{NAME}", "echo in")
	if code != 255 || out != "" || !strings.Contains(errs, "Host key verification failed") {
		t.Errorf("got %d, %q, %q", code, out, errs)
	}
	noError(t, os.WriteFile(known, nil, 0o600)) // an unknown key is refused too
	if _, errs, code := p.run("", "ssh", "-F", "{F}", "{NAME}", "echo in"); code != 255 ||
		!strings.Contains(errs, "Host key verification failed") {
		t.Errorf("an unknown host key: %d, %q", code, errs)
	}
	noError(t, os.WriteFile(known, before, 0o600))
	p.must("", "ssh", "-F", "{F}", "{NAME}", "true")
}

// proxyCommand returns the ProxyCommand of a configuration.
func proxyCommand(t *testing.T, config string) string {
	t.Helper()
	text, err := os.ReadFile(config)
	noError(t, err)
	_, rest, _ := strings.Cut(string(text), "ProxyCommand ")
	command, _, _ := strings.Cut(rest, "\n")
	return command
}

// sftpTree copies a tree to dir in the box and back. It expects the session to begin in home.
func sftpTree(t *testing.T, p *sshClient, dir, home string) {
	t.Helper()
	tree, back := writeTree(t), filepath.Join(t.TempDir(), "back")
	out := p.must(fmt.Sprintf("pwd\nmkdir %s\nput -r %s %s/up\nls -1 %s/up\nrename %s/up "+
		"%s/renamed\nget -r %s/renamed %s\n", dir, quoted(tree), dir, dir, dir, dir, dir,
		quoted(back)),
		"sftp", "-q", "-b", "-", "-F", "{F}", "{NAME}")
	if !strings.Contains(out, "Remote working directory: "+home+"\n") ||
		!strings.Contains(out, "/up/a name\n") {
		t.Errorf("sftp printed %q", out)
	}
	if a, b := describeTree(t, tree), describeTree(t, back); a != b {
		t.Errorf("sent\n%s\ngot back\n%s", a, b)
	}
	out, errs, code := p.run("get /no/such/file\n", "sftp", "-q", "-b", "-", "-F", "{F}", "{NAME}")
	if code == 0 || !strings.Contains(errs, "not found") {
		t.Errorf("get of a file that does not exist: %d, %q, %q", code, out, errs)
	}
}

func quoted(s string) string { return `"` + s + `"` }

// TestSSHConfigOfTwoBoxes shows that each box has a configuration and a key of its own.
func TestSSHConfigOfTwoBoxes(t *testing.T) {
	t.Parallel()
	testEngine(t)
	needClients(t)
	var people []*sshClient
	for i := range 2 {
		box := newBox(t, Config{Image: testImage, Network: "none", Hostname: fmt.Sprint("box", i)})
		people = append(people, newSSHClient(t, box))
	}
	if people[0].config == people[1].config {
		t.Fatal("two boxes share a configuration")
	}
	var wg sync.WaitGroup
	for range 3 {
		for i, p := range people {
			wg.Go(func() {
				if out, errs, code := p.run("", "ssh", "-F", "{F}", "{NAME}",
					"hostname"); out != fmt.Sprintf("box%d\n", i) || code != 0 {
					t.Errorf("box %d: %q, %q, %d", i, out, errs, code)
				}
			})
		}
	}
	wg.Wait()
	// Each box accepts only its own key.
	config, err := os.ReadFile(people[0].config)
	noError(t, err)
	swapped := filepath.Join(t.TempDir(), "config")
	noError(t, os.WriteFile(swapped, []byte(strings.ReplaceAll(string(config),
		filepath.Join(filepath.Dir(people[0].config), "key"),
		filepath.Join(filepath.Dir(people[1].config), "key"))), 0o600))
	if _, errs, code := people[0].run("", "ssh", "-o", "BatchMode=yes", "-F", swapped, "{NAME}",
		"true"); code != 255 || !strings.Contains(errs, "Permission denied") {
		t.Errorf("login with the key of the other box: %d, %q", code, errs)
	}
}

// TestSSHConfigOfBareImages uses ssh and sftp with boxes of images without either.
func TestSSHConfigOfBareImages(t *testing.T) {
	needClients(t, "sftp")
	oddTempDir(t)
	for _, image := range []string{bareImage, shellImage} {
		if image == bareImage && !testenv.All() {
			continue // it has more than shellImage
		}
		box := newBox(t, Config{Image: image, User: "12345:54321", ReadOnlyRoot: true,
			CapDrop: []string{"ALL"}, Network: "none"})
		p := newSSHClient(t, box)
		out, errs, code := p.run("in\n", "ssh", "-F", "{F}", "{NAME}",
			"read x; echo hi $x; exit 4")
		if out != "hi in\n" || errs != "" || code != 4 {
			t.Errorf("%s: %q, %q, %d", image, out, errs, code)
		}
		if out := p.must("", "ssh", "-tt", "-F", "{F}", "{NAME}",
			"[ -t 0 ] && echo terminal"); out != "terminal\r\n" {
			t.Errorf("%s: %q", image, out)
		}
		sftpTree(t, p, "/tmp/sftp", "/")
	}
	// sftp needs no shell in the box.
	box := newBox(t, Config{Image: shellImage, Network: "none"})
	p := newSSHClient(t, box)
	p.must("rm /bin/sh\n", "sftp", "-q", "-b", "-", "-F", "{F}", "{NAME}")
	if _, errs, code := p.run("", "ssh", "-F", "{F}", "{NAME}", "echo hi"); code != 127 ||
		!strings.Contains(errs, "no shell") {
		t.Errorf("without a shell: %d, %q", code, errs)
	}
	sftpTree(t, p, "/sftp", "/")
}

// TestGuestDoesNotKeepTheBox shows that a box ends after its owner's end, even if an ssh client of
// another program is running a command in it.
func TestGuestDoesNotKeepTheBox(t *testing.T) {
	d := testEngine(t)
	needClients(t)
	t.Setenv("TMPDIR", t.TempDir())
	kill, printed := startProgram(t, "guest")
	p := &sshClient{t: t, config: printed[1], name: printed[2]}
	lines, _ := p.start("ssh", "-F", "{F}", "{NAME}", "echo begun; while :; do sleep 0.1; done")
	waitLine(t, lines, "begun")
	if out := p.must("", "ssh", "-F", "{F}", "{NAME}", "echo another"); out != "another\n" {
		t.Errorf("got %q", out)
	}
	kill()
	end := time.Now().Add(testenv.Limit)
	for {
		r, err := d.ContainerInspect(t.Context(), printed[0], client.ContainerInspectOptions{})
		if err != nil || !r.Container.State.Running {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the box still runs long after its owner's end")
		}
		time.Sleep(50 * time.Millisecond)
	}
	for range lines { // until ssh ends
	}
}

// TestSSHConfigOfKilledProgram shows that the private key of a killed program stays until the next
// New or Reap.
func TestSSHConfigOfKilledProgram(t *testing.T) {
	testEngine(t)
	for _, next := range []string{"Reap", "New"} {
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		left := func() []string {
			names, err := filepath.Glob(filepath.Join(temp, "*/key"))
			noError(t, err)
			return names
		}
		kill, _ := startProgram(t, "guest")
		_, err := Engine{}.Reap(t.Context())
		noError(t, err)
		if got := left(); len(got) != 1 {
			t.Fatalf("while the program runs, the keys are %v", got)
		}
		kill()
		if got := left(); len(got) != 1 {
			t.Fatalf("after the program was killed, the keys are %v", got)
		}
		if next == "New" {
			newBox(t, Config{Image: bareImage, Network: "none"})
			waitFor(t, "the sweep", func() bool { return len(left()) == 0 })
		} else if _, err := (Engine{}).Reap(t.Context()); err != nil || len(left()) > 0 {
			t.Errorf("Reap has left the keys %v, %v", left(), err)
		}
	}
}
