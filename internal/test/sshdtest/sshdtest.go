// Package sshdtest runs a real sshd for tests.
package sshdtest

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
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// A Server is an OpenSSH server on loopback for one test, with a configuration, a host key and a
// port of its own.
type Server struct {
	Address string     // host and port
	User    string     // the user who may log in, which is this process's user
	Key     ssh.Signer // the user's key
	KeyFile string     // the file that holds Key
	HostKey ssh.PublicKey
	Dir     string // holds the server's files; removed with the server

	release func()   // gives up Address
	lines   []string // of its configuration
	cmd     *exec.Cmd
	log     bytes.Buffer // may be read once cmd has ended
}

// NewKey makes a key, and writes it to file if file is not empty.
func NewKey(t testing.TB, file string) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	if file != "" {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return signer
}

// Start starts a server, with lines added to its configuration. The server ends with the test. If
// there is no sshd, the test is skipped.
func Start(t testing.TB, lines ...string) *Server {
	t.Helper()
	if program() == "" {
		t.Skip("no sshd here: install openssh-server")
	}
	if os.Getuid() == 0 {
		// Debian's privilege separation directory
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Skipf("sshd as root needs /run/sshd: %v", err)
		}
	}
	// Not t.TempDir: no other user may read it, and sshd reads a user's authorized_keys as that
	// user.
	dir, err := os.MkdirTemp("", "sandshell-sshd-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	s := &Server{Dir: dir, KeyFile: filepath.Join(dir, "id")}
	address, release := hosttest.ReserveAddress(t)
	s.Address, s.release = address, sync.OnceFunc(release)
	s.Key = NewKey(t, s.KeyFile)
	s.HostKey = NewKey(t, filepath.Join(dir, "hostkey")).PublicKey()
	u, err := user.Current()
	require.NoError(t, err)
	s.User = u.Username
	require.NoError(t, os.WriteFile(filepath.Join(dir, "authorized_keys"),
		ssh.MarshalAuthorizedKey(s.Key.PublicKey()), 0o644))

	s.lines = lines
	s.start(t)
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("sshd's log:\n%s", &s.log)
		}
	})
	return s
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	config := strings.Join(append(without(s.lines, []string{
		"ListenAddress " + s.Address, "HostKey " + filepath.Join(s.Dir, "hostkey"), "PidFile none",
		"AuthorizedKeysFile " + filepath.Join(s.Dir, "authorized_keys"), "StrictModes no",
		"UsePAM no", "PrintLastLog no",
		// With SHLVL=2, bash does not take itself for the first shell of a login, and leaves
		// ~/.bashrc alone.
		"PermitRootLogin prohibit-password", "SetEnv SHLVL=2",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "UseDNS no",
		"Subsystem sftp internal-sftp",
	}), s.lines...), "\n") + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "config"), []byte(config), 0o644))
	s.cmd = exec.Command(program(), "-D", "-e", "-f", filepath.Join(s.Dir, "config"))
	s.cmd.Stderr = &s.log
	require.NoError(t, s.cmd.Start())
	if !s.up() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		t.Fatalf("sshd did not start: %s", &s.log)
	}
}

// program returns the path of this machine's sshd, or "" if there is none.
func program() string {
	path, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		path, _ = exec.LookPath("sshd")
	}
	return path
}

// Restart ends the server with its connections, and starts it again.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.end()
	s.start(t)
}

// ChangeHostKey gives the server another host key, from the next Restart on.
func (s *Server) ChangeHostKey(t testing.TB) {
	t.Helper()
	NewKey(t, filepath.Join(s.Dir, "hostkey"))
}

func (s *Server) up() bool {
	for end := time.Now().Add(testenv.Limit); time.Now().Before(end); time.Sleep(
		5 * time.Millisecond) {
		if c, err := net.Dial("tcp", s.Address); err == nil {
			b := make([]byte, 4)
			_, err := io.ReadFull(c, b)
			c.Close()
			return err == nil && string(b) == "SSH-"
		}
	}
	return false
}

// Stop ends the server and its children; each child serves one connection.
func (s *Server) Stop() {
	s.end()
	s.release()
}

func (s *Server) end() {
	if s.cmd.ProcessState != nil {
		return
	}
	sessions := s.Sessions() // before the parent ends, when they become init's children
	s.cmd.Process.Kill()
	for _, pid := range sessions {
		exec.Command("kill", strconv.Itoa(pid)).Run()
	}
	s.cmd.Wait() // returns when the sessions have closed its standard error too
}

// Sessions returns the processes that serve the current connections.
func (s *Server) Sessions() (pids []int) {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.cmd.Process.Pid,
		s.cmd.Process.Pid))
	for _, word := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Connect logs in.
func (s *Server) Connect(ctx context.Context) (*sshconn.Conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return nil, err
	}
	return sshconn.Handshake(ctx, raw, s.Address, &ssh.ClientConfig{
		User: s.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(s.Key)},
		HostKeyCallback: ssh.FixedHostKey(s.HostKey),
	}, nil)
}

// without returns the defaults that lines do not set. If a setting comes twice, sshd takes the
// first one, but it takes all host keys.
func without(lines, defaults []string) []string {
	return slices.DeleteFunc(defaults, func(d string) bool {
		keyword, _, _ := strings.Cut(d, " ")
		for _, line := range lines {
			switch word, _, _ := strings.Cut(line, " "); word {
			case "Match":
				return false // what follows is for some logins only
			case keyword:
				return keyword != "HostKey"
			}
		}
		return false
	})
}

// Log returns what the server has logged. The server must have been stopped.
func (s *Server) Log() string { return s.log.String() }
