package sshbox

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// sshd is an OpenSSH server on loopback, of this test's own: its own configuration, host key and port.
type sshd struct {
	Address string
	Dir     string
	Key     ssh.Signer // logs in
	KeyFile string     // the same
	HostKey ssh.PublicKey
	User    string

	cmd *exec.Cmd
	log *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newKey(t testing.TB, file string) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	noError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	noError(t, err)
	if file != "" {
		noError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	signer, err := ssh.NewSignerFromKey(private)
	noError(t, err)
	return signer
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startSSHD starts a server with lines added to its configuration. Where OpenSSH has none, the test is skipped.
func startSSHD(t testing.TB, lines ...string) *sshd {
	t.Helper()
	binary, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		if binary, err = exec.LookPath("sshd"); err != nil {
			t.Skip("no sshd here: install openssh-server")
		}
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // Debian's privilege separation directory
			t.Skipf("sshd as root needs /run/sshd: %v", err)
		}
	}
	// Not t.TempDir: what it makes is readable by nobody else, and for another user the server reads as that user.
	dir, err := os.MkdirTemp("", "sandshell-sshd-")
	noError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	noError(t, os.Chmod(dir, 0o755))
	s := &sshd{Dir: dir, KeyFile: filepath.Join(dir, "id"), log: &syncBuffer{}}
	s.Key = newKey(t, s.KeyFile)
	s.HostKey = newKey(t, filepath.Join(dir, "hostkey")).PublicKey()
	u, err := user.Current()
	noError(t, err)
	s.User = u.Username
	noError(t, os.WriteFile(filepath.Join(dir, "authorized_keys"), ssh.MarshalAuthorizedKey(s.Key.PublicKey()), 0o644))

	for attempt := 0; ; attempt++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		noError(t, err)
		s.Address = l.Addr().String()
		l.Close()
		_, port, _ := net.SplitHostPort(s.Address)
		config := strings.Join(append([]string{
			"ListenAddress 127.0.0.1", "Port " + port, "HostKey " + filepath.Join(dir, "hostkey"), "PidFile none",
			"AuthorizedKeysFile " + filepath.Join(dir, "authorized_keys"), "StrictModes no", "UsePAM no", "PrintLastLog no",
			"PermitRootLogin prohibit-password", "SetEnv SHLVL=2", // bash, for which it is not the first shell, leaves ~/.bashrc alone
			"PasswordAuthentication no", "KbdInteractiveAuthentication no", "UseDNS no",
		}, lines...), "\n") + "\n"
		noError(t, os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o644))
		s.cmd = exec.Command(binary, "-D", "-e", "-f", filepath.Join(dir, "config"))
		s.cmd.Stderr = s.log
		noError(t, s.cmd.Start())
		if s.up() {
			break
		}
		s.cmd.Process.Kill()
		s.cmd.Wait()
		if attempt == 3 { // somebody else took the port three times: it is not the port
			t.Fatalf("sshd does not come up: %s", s.log)
		}
	}
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("sshd's log:\n%s", s.log)
		}
	})
	return s
}

func (s *sshd) up() bool {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", s.Address); err == nil {
			b := make([]byte, 4)
			_, err := io.ReadFull(c, b)
			c.Close()
			return err == nil && string(b) == "SSH-"
		}
	}
	return false
}

// stop ends the server, and the children that have connections.
func (s *sshd) stop() {
	if s.cmd.ProcessState != nil {
		return
	}
	// The children's ids, before their parent is gone and they belong to init.
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.cmd.Process.Pid, s.cmd.Process.Pid))
	s.cmd.Process.Kill()
	s.cmd.Wait()
	for _, pid := range strings.Fields(string(children)) {
		exec.Command("kill", pid).Run()
	}
}

func (s *sshd) config() DialConfig {
	return DialConfig{Address: s.Address, User: s.User, Signer: s.Key, HostKey: ssh.FixedHostKey(s.HostKey)}
}

// host logs in, and checks at the end that Close leaves nothing behind.
func (s *sshd) host(t testing.TB, change func(*DialConfig)) *host {
	t.Helper()
	c := s.config()
	if change != nil {
		change(&c)
	}
	c, err := c.withDefaults()
	noError(t, err)
	h, err := dialHost(t.Context(), c)
	noError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

// result is what a program printed and how it ended.
type result struct {
	stdout, stderr string
	status         shellbox.Status
	err            error
}

// finish reads a process to its end.
func finish(p shellbox.Process) (r result) {
	var wg sync.WaitGroup
	read := func(to *string, from io.Reader) {
		if from != nil {
			wg.Go(func() {
				b, _ := io.ReadAll(from)
				*to = string(b)
			})
		}
	}
	read(&r.stdout, p.Stdout())
	read(&r.stderr, p.Stderr())
	wg.Wait()
	r.status, r.err = p.Wait()
	p.Close()
	return r
}

func run(t testing.TB, h shellbox.Host, p shellbox.Program) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	proc, err := h.Start(ctx, p)
	noError(t, err)
	if p.Terminal == nil {
		proc.Stdin().Close()
	}
	r := finish(proc)
	noError(t, r.err)
	return r
}

func sh(script string) shellbox.Program { return shellbox.Program{Args: []string{"sh", "-c", script}} }

func execute(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
