//go:build linux

package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/sshbox"
	"golang.org/x/crypto/ssh"
)

// A login has the keys of a server and a user.
type login struct {
	user    string
	key     ssh.Signer
	hostKey ssh.HostKeyCallback
}

// newLogin makes keys. It also returns the content of the files that the server needs: its private
// key, and the user's public key.
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
	return login{name, key, ssh.FixedHostKey(host.PublicKey())}, hostKey,
		string(ssh.MarshalAuthorizedKey(key.PublicKey()))
}

// handshake logs in over conn.
func (l login) handshake(conn net.Conn) (*ssh.Client, error) {
	c, channels, requests, err := ssh.NewClientConn(conn, "", &ssh.ClientConfig{
		User: l.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(l.key)}, HostKeyCallback: l.hostKey,
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	})
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

// An sshSession is bash on a terminal, over an SSH connection of package x/crypto/ssh.
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
	if err := s.RequestPty("xterm", 24, 80, ssh.TerminalModes{ssh.ECHO: 1, ssh.ONLCR: 0,
		iutf8: 1}); err != nil {
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

// sshd is an OpenSSH server on loopback, and a plain connection to it.
type sshd struct {
	login
	address string
	dir     string // for boxd
	boxd    string // dir, or sshbox.NoBoxd
	client  *ssh.Client
}

// startSSHD starts a server. It ends with the benchmark.
func startSSHD(t testing.TB) *sshd {
	t.Helper()
	server := sshdtest.Start(t)
	s := &sshd{login: login{server.User, server.Key, ssh.FixedHostKey(server.HostKey)},
		address: server.Address, dir: filepath.Join(server.Dir, "boxd"), boxd: sshbox.NoBoxd}
	var err error
	s.client, err = s.dial(t.Context())
	noError(t, err)
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
