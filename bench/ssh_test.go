//go:build linux

package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// A login is what it takes to log in.
type login struct {
	user    string
	key     ssh.Signer
	hostKey ssh.HostKeyCallback
}

// newLogin makes the keys; the server's private one and the user's public one are returned as their files are to be.
func newLogin(t testing.TB, name string) (l login, hostKey, authorized string) {
	t.Helper()
	newKey := func() (ssh.Signer, string) {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		noError(t, err)
		block, err := ssh.MarshalPrivateKey(private, "")
		noError(t, err)
		signer, err := ssh.NewSignerFromKey(private)
		noError(t, err)
		return signer, string(pem.EncodeToMemory(block))
	}
	key, _ := newKey()
	host, hostKey := newKey()
	return login{name, key, ssh.FixedHostKey(host.PublicKey())}, hostKey, string(ssh.MarshalAuthorizedKey(key.PublicKey()))
}

// handshake logs in over conn.
func (l login) handshake(conn net.Conn) (*ssh.Client, error) {
	c, channels, requests, err := ssh.NewClientConn(conn, "", &ssh.ClientConfig{
		User: l.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(l.key)}, HostKeyCallback: l.hostKey, HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	})
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

// An sshSession is bash on a terminal at the other end of an SSH connection: x/crypto's, and nothing else.
type sshSession struct {
	io.Reader
	io.Writer
	s *ssh.Session
}

func (s sshSession) Close() error { return s.s.Close() }

func sshTerminal(c *ssh.Client) (stream, error) {
	s, err := c.NewSession()
	if err != nil {
		return nil, err
	}
	w, _ := s.StdinPipe()
	r, _ := s.StdoutPipe()
	const iutf8 = 42 // RFC 8160
	if err := s.RequestPty("xterm", 24, 80, ssh.TerminalModes{ssh.ECHO: 1, ssh.ONLCR: 0, iutf8: 1}); err != nil {
		return nil, err
	}
	return sshSession{r, w, s}, s.Start("exec " + strings.Join(shellArgs, " "))
}

func sshRun(c *ssh.Client, script string, stdin io.Reader, stdout io.Writer) error {
	s, err := c.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	s.Stdin, s.Stdout = stdin, stdout
	return s.Run(script)
}

// sshd is an OpenSSH server on loopback, of the benchmark's own, and a plain connection to it.
type sshd struct {
	login
	address string
	client  *ssh.Client
}

// startSSHD starts a server that ends with the benchmark.
func startSSHD(t testing.TB) *sshd {
	t.Helper()
	binary, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		t.Skip("no sshd here: install openssh-server")
	}
	if os.Getuid() == 0 {
		noError(t, os.MkdirAll("/run/sshd", 0o755)) // Debian's privilege separation directory
	}
	dir := t.TempDir()
	u, err := user.Current()
	noError(t, err)
	s := &sshd{}
	var hostKey, authorized string
	s.login, hostKey, authorized = newLogin(t, u.Username)
	noError(t, os.WriteFile(filepath.Join(dir, "hostkey"), []byte(hostKey), 0o600))
	noError(t, os.WriteFile(filepath.Join(dir, "authorized_keys"), []byte(authorized), 0o644))

	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	s.address = l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(s.address)
	config := strings.Join([]string{
		"ListenAddress 127.0.0.1", "Port " + port, "HostKey " + dir + "/hostkey", "PidFile none",
		"AuthorizedKeysFile " + dir + "/authorized_keys", "StrictModes no", "UsePAM no", "PrintLastLog no",
		"PermitRootLogin prohibit-password", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "UseDNS no",
		"SetEnv SHLVL=2", // bash, for which it is not the first shell, leaves ~/.bashrc alone
		"",
	}, "\n")
	noError(t, os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o644))
	cmd := exec.Command(binary, "-D", "-e", "-f", filepath.Join(dir, "config"))
	noError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill() // the connections' own processes end with the connections
		cmd.Wait()
	})
	for end := time.Now().Add(5 * time.Second); s.client == nil; time.Sleep(5 * time.Millisecond) {
		if s.client, err = s.dial(t.Context()); err != nil && time.Now().After(end) {
			t.Fatalf("sshd does not come up: %v", err)
		}
	}
	t.Cleanup(func() { s.client.Close() })
	return s
}

func (s *sshd) dial(ctx context.Context) (*ssh.Client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	return s.handshake(conn)
}

func (s *sshd) terminal() (stream, error) { return sshTerminal(s.client) }

func (s *sshd) run(script string, stdin io.Reader, stdout io.Writer) error {
	return sshRun(s.client, script, stdin, stdout)
}
